//! English.

use hub_core::{bots::BotStatus, error::Advice};

use super::{
    Bots, Common, Frame, Keys, Refusals, Words, account, actions, bind, channel_plugins, channels, devices,
    filters, home, ilink, live, messages, people, playground, replays, shortcuts, signatures, sinks, traces,
    webhooks,
};

pub(super) static WORDS: Words = Words {
    lang: "en",
    own_name: "English",
    frame: Frame {
        skip: "Skip to content",
        main_navigation: "Main",
        home: "Home",
        bots: "Bots",
        keys: "API keys",
        account: "Account",
        api_reference: "API reference",
        sign_out: "Sign out",
        signed_in_as: "Signed in as",
        language: "Language",
        theme: "Theme",
        themes: ["System", "Light", "Dark"],
        look: "Language and theme",
        apply: "Apply",
        as_command: "The same in a terminal",
        no_script: "Without scripts, this page does not update by itself.",
    },
    common: Common {
        name: "Name",
        save: "Save",
        cancel: "Cancel",
        copy: "Copy",
        copied: "Copied",
        created: "Created",
        never: "never",
        older: "Older",
        first_page: "Newest",
        problems: "Nothing was changed. Correct these fields:",
        code: "Code",
        request_id: "Request ID",
        yes: "yes",
        no: "no",
    },
    home: home::Home::EN,
    bots: Bots {
        title: "Bots",
        what: "A bot is a chat account that this hub receives messages for.",
        empty: "No bot. Bind an account; it takes a minute.",
        network: "Network",
        state: "Status",
        last_message: "Last message",
        can_send: "Can send",
        account: "Account",
        connection: "Connection",
        since: "Since",
        last_poll: "Network last responded",
        last_error: "Last error",
        node: "Node",
        status: |status| match status {
            BotStatus::Pending => "Pending",
            BotStatus::Connecting => "Connecting",
            BotStatus::Online => "Online",
            BotStatus::Degraded => "Degraded",
            BotStatus::Offline => "Offline",
            BotStatus::Expired => "Login expired",
            BotStatus::Error => "Error",
        },
        remedy: |status| match status {
            BotStatus::Pending | BotStatus::Connecting => "The hub is connecting. This takes a few seconds.",
            BotStatus::Online => "The network responds.",
            BotStatus::Degraded => {
                "The network responds irregularly. Messages may arrive late; the hub keeps trying."
            }
            BotStatus::Offline => "The network has not responded for some time. The hub keeps trying.",
            BotStatus::Expired => {
                "The network requires a new login. Bind the account again; channels and messages stay."
            }
            BotStatus::Error => "The hub stopped polling this account. Read the last error, then reconnect.",
        },
        rename: "Rename",
        renamed: "The bot was renamed.",
        reconnect: "Reconnect",
        reconnecting: "The hub is reconnecting.",
        delete: "Delete bot…",
        delete_named: |name| format!("Delete bot {name}"),
        delete_help: "This deletes the bot with its channels, messages, contacts, and everything queued for sending or \
            delivery. It cannot be undone.",
        deleted: "The bot was deleted.",
        settings: "Settings",
    },
    keys: Keys {
        title: "API keys",
        what: "A key lets a program call the API as you. Send it as a bearer token or in X-API-Key.",
        empty: "No key. Create one for each program, so that each can be revoked alone.",
        key: "Key",
        expires: "Expires",
        last_used: "Last used",
        expired: "expired",
        new: "New key",
        name_help: "What uses it, for example: nightly backup",
        lifetime: "Lifetime in days",
        lifetime_help: "1 to 3650; empty for a key that does not expire.",
        create: "Create key",
        created: "Key created",
        shown_once: "Copy the key now. It is not shown again.",
        try_it: "Try it:",
        saved_it: "I have saved it",
        revoke: "Revoke…",
        revoke_named: |name| format!("Revoke key {name}"),
        revoked: "The key was revoked. It stopped working.",
    },
    account: account::Account::EN,
    playground: playground::Playground::EN,
    bind: bind::Bind::EN,
    people: people::People::EN,
    channels: channels::Channels::EN,
    filters: filters::Filters::EN,
    webhooks: webhooks::Webhooks::EN,
    sockets: sinks::Sockets::EN,
    ilink: ilink::Ilink::EN,
    models: sinks::Models::EN,
    channel_plugins: channel_plugins::ChannelPlugins::EN,
    replays: replays::Replays::EN,
    devices: devices::Devices::EN,
    shortcuts: shortcuts::Shortcuts::EN,
    signatures: signatures::Signatures::EN,
    refusals: Refusals {
        not_found: ("Not found", "This does not exist or is not yours."),
        no_page: ("No such page", "The address is wrong, or the page has moved."),
        forbidden: (
            "Not allowed",
            "Your role does not allow this, or the request did not come from this page.",
        ),
        signed_out: ("Signed out", "Sign in in a new tab, then send this again. Nothing was changed."),
        send_again: "Send again",
        sign_in: "Sign in",
        method: ("Not possible here", "This page does not accept such a request."),
        conflict: ("Not possible now", "The current state does not allow this."),
        window_closed: (
            "Sending is not possible now",
            "The network does not accept a message to this person now.",
        ),
        too_large: ("Too large", "What was sent exceeds the limit of this hub."),
        media_type: ("Not a form", "The request is not a form of this page."),
        rate_limited: ("Too many requests", "Wait a moment, then try again."),
        again_in: |seconds| match seconds {
            1 => "Try again in 1 second.".to_owned(),
            _ => format!("Try again in {seconds} seconds."),
        },
        upstream: ("Another service failed", "The chat network or another service cannot be reached."),
        unavailable: ("Not available now", "The hub cannot do this at the moment."),
        internal: ("The hub failed", "The log of the server has the cause, under this request ID."),
        invalid: ("Not accepted", "The address or the form contains a value that is not accepted."),
        home: "To the start page",
        advice: |advice| {
            let words = crate::advice::words(advice);
            match advice {
                Advice::BindBot => "Bind the bot again.".to_owned(),
                Advice::RestoreBackup => format!("Restore a backup: `{words}`"),
                Advice::MigrateDatabase => format!("Migrate the database: `{words}`"),
                Advice::RotateKey => format!("Rotate the key again: `{words}`"),
                Advice::NewKey => format!("Create a key: `{words}`"),
                Advice::Confirm => format!("Confirm it: `{words}`"),
                Advice::CreateAdministrator => {
                    format!("Create an administrator on the machine of the hub: `{words}`")
                }
                Advice::Set(setting, Some(value)) => {
                    format!(
                        "To allow it, start the server with `{}={value}`.",
                        crate::advice::variable(*setting)
                    )
                }
                Advice::Set(setting, None) => {
                    format!("Change `{}` of the server.", crate::advice::variable(*setting))
                }
            }
        },
        reasons: &[],
    },
    actions: actions::Actions::EN,
    live: &live::EN,
    messages: &messages::EN,
    traces: &traces::EN,
};
