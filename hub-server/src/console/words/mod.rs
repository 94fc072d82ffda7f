//! The words of the pages, in English and in Simplified Chinese: a language is a constant of one type, so a missing
//! word does not compile.

use hub_core::{bots::BotStatus, error::Advice};

use crate::appearance::Language;

/// A word without values.
pub(super) type Text = &'static str;

/// Declares the words of a noun, with both languages next to each other: `name: Text = "English", "中文";`.
macro_rules! words {
    ($(#[$meta:meta])* $noun:ident { $($(#[$about:meta])* $word:ident: $kind:ty = $english:expr, $chinese:expr;)* }) => {
        $(#[$meta])*
        pub(in crate::console) struct $noun {
            $($(#[$about])* pub(in crate::console) $word: $kind,)*
        }

        impl $noun {
            pub(super) const EN: Self = Self { $($word: $english,)* };
            pub(super) const ZH: Self = Self { $($word: $chinese,)* };
        }
    };
}

mod account;
mod actions;
mod bind;
mod causes;
mod channel_plugins;
mod channels;
mod devices;
mod en;
mod events;
mod explained;
mod facts;
mod filters;
mod home;
mod ilink;
mod live;
mod messages;
mod people;
mod playground;
mod replays;
mod shortcuts;
mod signatures;
mod sinks;
mod traces;
mod webhooks;
mod zh;

pub(super) use self::{
    live::Live, messages::Messages, shortcuts::Shortcuts, signatures::Signatures, traces::Traces,
};

/// The words of a language. Sentences that contain values are functions.
pub(super) struct Words {
    /// The `lang` of the pages.
    pub(super) lang: &'static str,
    /// The name of the language in itself.
    pub(super) own_name: &'static str,
    pub(super) frame: Frame,
    pub(super) common: Common,
    pub(super) home: home::Home,
    pub(super) bots: Bots,
    pub(super) keys: Keys,
    pub(super) account: account::Account,
    pub(super) playground: playground::Playground,
    pub(super) bind: bind::Bind,
    pub(super) people: people::People,
    pub(super) channels: channels::Channels,
    pub(super) filters: filters::Filters,
    pub(super) webhooks: webhooks::Webhooks,
    pub(super) sockets: sinks::Sockets,
    pub(super) ilink: ilink::Ilink,
    pub(super) models: sinks::Models,
    pub(super) channel_plugins: channel_plugins::ChannelPlugins,
    pub(super) replays: replays::Replays,
    pub(super) devices: devices::Devices,
    pub(super) shortcuts: Shortcuts,
    pub(super) signatures: Signatures,
    pub(super) refusals: Refusals,
    pub(super) actions: actions::Actions,
    pub(super) live: &'static Live,
    pub(super) messages: &'static Messages,
    pub(super) traces: &'static Traces,
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Words({})", self.lang)
    }
}

/// What surrounds every page.
pub(super) struct Frame {
    pub(super) skip: &'static str,
    pub(super) main_navigation: &'static str,
    pub(super) home: &'static str,
    pub(super) bots: &'static str,
    pub(super) keys: &'static str,
    pub(super) account: &'static str,
    pub(super) api_reference: &'static str,
    pub(super) sign_out: &'static str,
    pub(super) signed_in_as: &'static str,
    pub(super) language: &'static str,
    pub(super) theme: &'static str,
    pub(super) themes: [&'static str; 3],
    pub(super) look: &'static str,
    pub(super) apply: &'static str,
    pub(super) as_command: &'static str,
    pub(super) no_script: &'static str,
}

/// What several pages say.
pub(super) struct Common {
    pub(super) name: &'static str,
    pub(super) save: &'static str,
    pub(super) cancel: &'static str,
    pub(super) copy: &'static str,
    pub(super) copied: &'static str,
    pub(super) created: &'static str,
    pub(super) never: &'static str,
    pub(super) older: &'static str,
    pub(super) first_page: &'static str,
    pub(super) problems: &'static str,
    pub(super) code: &'static str,
    pub(super) request_id: &'static str,
    pub(super) yes: &'static str,
    pub(super) no: &'static str,
}

pub(super) struct Bots {
    pub(super) title: &'static str,
    pub(super) what: &'static str,
    pub(super) empty: &'static str,
    pub(super) network: &'static str,
    pub(super) state: &'static str,
    pub(super) last_message: &'static str,
    pub(super) can_send: &'static str,
    pub(super) account: &'static str,
    pub(super) connection: &'static str,
    pub(super) since: &'static str,
    pub(super) last_poll: &'static str,
    pub(super) last_error: &'static str,
    pub(super) node: &'static str,
    pub(super) status: fn(BotStatus) -> &'static str,
    /// What each status means, and what to do.
    pub(super) remedy: fn(BotStatus) -> &'static str,
    pub(super) rename: &'static str,
    pub(super) renamed: &'static str,
    pub(super) reconnect: &'static str,
    pub(super) reconnecting: &'static str,
    pub(super) delete: &'static str,
    pub(super) delete_named: fn(&str) -> String,
    pub(super) delete_help: &'static str,
    pub(super) deleted: &'static str,
    pub(super) settings: &'static str,
}

pub(super) struct Keys {
    pub(super) title: &'static str,
    pub(super) what: &'static str,
    pub(super) empty: &'static str,
    pub(super) key: &'static str,
    pub(super) expires: &'static str,
    pub(super) last_used: &'static str,
    pub(super) expired: &'static str,
    pub(super) new: &'static str,
    pub(super) name_help: &'static str,
    pub(super) lifetime: &'static str,
    pub(super) lifetime_help: &'static str,
    pub(super) create: &'static str,
    pub(super) created: &'static str,
    pub(super) shown_once: &'static str,
    pub(super) try_it: &'static str,
    pub(super) saved_it: &'static str,
    pub(super) revoke: &'static str,
    pub(super) revoke_named: fn(&str) -> String,
    pub(super) revoked: &'static str,
}

/// What the pages say of failures.
pub(super) struct Refusals {
    pub(super) not_found: (&'static str, &'static str),
    pub(super) no_page: (&'static str, &'static str),
    pub(super) forbidden: (&'static str, &'static str),
    pub(super) signed_out: (&'static str, &'static str),
    pub(super) send_again: &'static str,
    pub(super) sign_in: &'static str,
    pub(super) method: (&'static str, &'static str),
    pub(super) conflict: (&'static str, &'static str),
    pub(super) window_closed: (&'static str, &'static str),
    pub(super) too_large: (&'static str, &'static str),
    pub(super) media_type: (&'static str, &'static str),
    pub(super) rate_limited: (&'static str, &'static str),
    pub(super) again_in: fn(u64) -> String,
    pub(super) upstream: (&'static str, &'static str),
    pub(super) unavailable: (&'static str, &'static str),
    pub(super) internal: (&'static str, &'static str),
    pub(super) invalid: (&'static str, &'static str),
    pub(super) home: &'static str,
    /// A step towards the solution of an error; commands and variables are between backquotes.
    pub(super) advice: fn(&Advice) -> String,
    /// Translations of the reasons for rejected fields; others are shown as the API reports them, in English.
    pub(super) reasons: &'static [(&'static str, &'static str)],
}

/// The words of a language.
pub(super) fn of(language: Language) -> &'static Words {
    match language {
        Language::English => &en::WORDS,
        Language::Chinese => &zh::WORDS,
    }
}
