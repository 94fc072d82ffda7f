//! Remedies for a message that did not arrive.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    error::Setting,
    id::{BotId, ChannelId, TraceId},
    model::sinks::SinkId,
    words::words,
};

/// Something that the owner of the bot, the operator of the hub, or the sender of the message can do, with the ids that it
/// needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
#[serde(tag = "action", rename_all = "snake_case")]
#[api(tag = "action", example = {
    "action": "set_filter",
    "bot_id": "bot_01KAG00000E008000000000001",
    "channel_id": "ch_01KAG00000E008000000000002",
})]
pub enum Remedy {
    /// Wait; the hub continues by itself.
    Wait,
    /// Attempt the parked delivery now.
    Attempt(OfTrace),
    /// Replay the message.
    Replay(OfTrace),
    /// Read the steps of the trace.
    OpenTrace(OfTrace),
    /// Correct the plugin that the trace recorded; a debugger runs it again.
    DebugPlugin(OfTrace),
    /// Create a channel.
    CreateChannel(OfBot),
    /// Enable the channel.
    EnableChannel(OfChannel),
    /// Mention the handle of the channel at the start of the message.
    MentionHandle,
    /// Remove the handle of the channel.
    RemoveHandle(OfChannel),
    /// Change the filter.
    SetFilter(OfChannel),
    /// Replace the expression of the filter, which is invalid.
    SetExpression(OfChannel),
    /// Connect a client to the channel.
    ConnectClient(OfChannel),
    /// Change a setting of the webhook.
    SetWebhook(WebhookSetting),
    /// Enable a sink.
    EnableSink(OfSink),
    /// Configure the endpoint of the model, for all channels or for this one.
    SetModel(OfChannel),
    /// Test the model of the channel.
    TestModel(OfChannel),
    /// Install a version of the plugin that works, or enable it again.
    EnablePlugin(OfPlugin),
    /// Change the plugin, or disable it.
    DisablePlugin(OfPlugin),
    /// Check the apps on the bot.
    OpenApps(OfBot),
    /// Check the status of the bot.
    OpenBot(OfBot),
    /// Bind the same account again.
    BindBot(OfBot),
    /// Send the message again.
    Send(OfBot),
    /// Look at the phone of the account.
    CheckPhone,
    /// The person has to write to the bot.
    Write,
    /// The person has to write again, as text.
    WriteText,
    /// Correct the receiver.
    CorrectReceiver,
    /// Start the receiver.
    StartReceiver,
    /// Renew or correct the certificate of the receiver.
    RenewCertificate,
    /// Start a node of the hub.
    StartNode,
    /// Update the hub.
    UpdateHub,
    /// Change a setting of the hub.
    ChangeSetting(OfHub),
}

/// A bot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
pub struct OfBot {
    /// Id of the bot.
    pub bot_id: BotId,
}

/// A channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
pub struct OfChannel {
    /// Id of the bot.
    pub bot_id: BotId,
    /// Id of the channel.
    pub channel_id: ChannelId,
}

/// A trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
pub struct OfTrace {
    /// Id of the bot.
    pub bot_id: BotId,
    /// Id of the trace.
    pub trace_id: TraceId,
}

/// A plugin of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
pub struct OfPlugin {
    /// The channel.
    #[serde(flatten)]
    pub place: OfChannel,
    /// Name of the plugin.
    pub plugin: String,
}

/// A sink of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
pub struct OfSink {
    /// The channel.
    #[serde(flatten)]
    pub place: OfChannel,
    /// The sink.
    pub sink: SinkId,
}

/// A setting of a channel's webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
pub struct WebhookSetting {
    /// The channel.
    #[serde(flatten)]
    pub place: OfChannel,
    /// The field of the webhook.
    pub field: WebhookField,
}

/// A setting of the hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
pub struct OfHub {
    /// The setting.
    pub setting: Setting,
}

words! {
    /// A field of a webhook that a remedy changes.
    pub enum WebhookField {
        /// The URL.
        Url = "url",
        /// The method of authentication and its secret.
        Auth = "auth",
        /// The timeout of a request.
        TimeoutMs = "timeout_ms",
        /// The highest rate of requests.
        RateLimitPerS = "rate_limit_per_s",
        /// The requests in flight at the same time.
        MaxConcurrency = "max_concurrency",
        /// Whether a text `reply` in the response is sent to the sender.
        AutoReply = "auto_reply",
    }
}

/// A sentence without its full stop, and without the words of a frontend.
impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wait => "Wait",
            Self::Attempt(_) => "Try it now",
            Self::Replay(_) => "Then replay the message",
            Self::OpenTrace(_) => "See the steps of the trace",
            Self::DebugPlugin(_) => "Correct the plugin: a debugger runs it again with the recorded message",
            Self::CreateChannel(_) => "Create a channel",
            Self::EnableChannel(_) => "Enable the channel",
            Self::MentionHandle => "Mention the handle at the start of the message",
            Self::RemoveHandle(_) => "Or remove the handle of the channel",
            Self::SetFilter(_) => "Change the filter",
            Self::SetExpression(_) => "Set the expression of the filter again",
            Self::ConnectClient(_) => "Connect a client to the channel",
            Self::SetWebhook(WebhookSetting { field, .. }) => match field {
                WebhookField::Url => "Set the URL of the webhook",
                WebhookField::Auth => "Set the secret that the receiver expects",
                WebhookField::TimeoutMs => {
                    "Raise the timeout of the webhook (`timeout_ms`), or respond faster"
                }
                WebhookField::RateLimitPerS => {
                    "Lower the rate of requests (`rate_limit_per_s` of the webhook)"
                }
                WebhookField::MaxConcurrency => "Raise `max_concurrency` of the webhook",
                WebhookField::AutoReply => "To send the reply, enable `auto_reply` of the webhook",
            },
            Self::EnableSink(at) => return write!(f, "Enable the sink {}", at.sink),
            Self::SetModel(_) => "Configure the endpoint of the model, for all channels or for this one",
            Self::TestModel(_) => "Check the model",
            Self::EnablePlugin(of) => {
                return write!(f, "Install a version of {} that works, or enable it again", of.plugin);
            }
            Self::DisablePlugin(of) => return write!(f, "Change the plugin {}, or disable it", of.plugin),
            Self::OpenApps(_) => "Check the apps on the bot",
            Self::OpenBot(_) => "Check the status of the bot",
            Self::BindBot(_) => "Bind the same account again",
            Self::Send(_) => "Send the message again",
            Self::CheckPhone => "Look at the phone of the account",
            Self::Write => "The person has to write to the bot",
            Self::WriteText => "Ask the sender to write again as text",
            Self::CorrectReceiver => "Correct the receiver: its log has the cause",
            Self::StartReceiver => "Start the receiver",
            Self::RenewCertificate => "Renew or correct the certificate of the receiver",
            Self::StartNode => "Start a node of the hub",
            Self::UpdateHub => "Update the hub: a later version may read such messages",
            Self::ChangeSetting(OfHub { setting }) => match setting {
                Setting::TraceRetention => {
                    "Traces are kept for 7 days unless the setting `trace_retention` differs"
                }
                Setting::EgressAllow => "Or allow the address with the setting `egress_allow`",
                Setting::SandboxFilter => {
                    "Run the hub where system calls can be filtered, or set `sandbox_filter` to `optional`"
                }
                Setting::SecretKey | Setting::BackupPassphrase | Setting::DataDir | Setting::PublicUrl => {
                    return write!(f, "Correct the setting `{setting}`");
                }
            },
        })
    }
}
