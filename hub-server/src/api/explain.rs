//! Why a message did or did not arrive.

use hub_core::{
    Hub,
    traces::{self, Check, Explanation},
};
use poem::web::Data;
use poem_openapi::{
    Object, OpenApi,
    param::{Path, Query},
    types::Example,
};

use super::Tag;
use crate::{
    credentials::User,
    envelope::{ApiResult, ok},
    wire::{BotId, ChannelId, MessageId, Time, TraceId, enumeration, view},
};

/// Explanations.
#[derive(Debug, Clone, Copy)]
pub struct ExplanationApi;

enumeration! {
    /// What happened to a message in a channel.
    Verdict = traces::Verdict {
        /// The receiver or the model has it.
        Delivered,
        /// It is in the channel's log, for clients; no other sink was on.
        LogOnly,
        /// It could not be read.
        Unreadable,
        /// It is no message of a person.
        NoUserMessage,
        /// The bot had no channel.
        NoChannel,
        /// The channel was created later.
        OlderThanChannel,
        /// Its trace was deleted.
        NoTrace,
        /// The channel was off.
        ChannelOff,
        /// It did not mention the channel's handle.
        NotAddressed,
        /// The filter did not match.
        Filtered,
        /// The stored filter does not work.
        FilterBroken,
        /// A plugin skipped it.
        SkippedByPlugin,
        /// The sink ignores such messages.
        IgnoredBySink,
        /// A plugin failed.
        PluginFailed,
        /// The sink is off.
        SinkOff,
        /// The receiver accepts no more messages.
        Gone,
        /// The receiver responded with an error.
        ReceiverError,
        /// There was no response.
        Unreachable,
        /// The delivery failed for another reason.
        Failed,
        /// The receiver has it, and the reply could not be sent.
        ReplyFailed,
        /// An attempt failed, and another one follows.
        Retrying,
        /// The delivery waits for a setting.
        Waiting,
        /// It waits for its first attempt.
        Queued,
        /// It waits, and no node works for the bot.
        NoNode,
        /// The chat network has the sent message.
        Sent,
        /// The sent message waits for the chat network.
        Sending,
        /// The sent message waits until the person writes again.
        WindowClosed,
        /// The sent message waits for a new login of the bot.
        LoginExpired,
        /// The chat network refused the sent message.
        SendFailed,
        /// The outcome of the send is unknown.
        SendUnknown,
        /// The sent message waited too long.
        SendExpired,
    }
}

enumeration! {
    /// What is checked, in the order of the path of a message.
    CheckName = traces::CheckName {
        /// Whether the hub stored a message of a person.
        Received,
        /// Whether the bot is connected and a node works for it.
        Bot,
        /// Whether the channel is on.
        Channel,
        /// What the channel's handle and filter decided.
        Filter,
        /// What the plugins did.
        Plugins,
        /// Whether the sink is on.
        Sink,
        /// How the attempts ended.
        Delivery,
        /// How replies were sent.
        Reply,
        /// How the message was sent.
        Send,
    }
}

view! {
    /// One check.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none, example)]
    pub struct CheckView from check: Check {
        /// What was checked.
        pub name: CheckName,
        /// Whether it is as it should be.
        pub ok: bool,
        /// What was found.
        pub why: String,
        /// When that was, or is due.
        pub at: Option<Time>,
    }
}

view! {
    /// Why a message did or did not arrive in a channel.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none, example)]
    pub struct ExplanationView from explanation: Explanation {
        /// Id of the message.
        pub message_id: MessageId,
        /// Id of the explained channel; absent if the message has no channel.
        pub channel_id: Option<ChannelId>,
        /// Id of the newest trace of the message in the channel; absent if it has no trace.
        pub trace_id: Option<TraceId>,
        /// The verdict.
        pub verdict: Verdict,
        /// The verdict as a sentence.
        pub sentence: String,
        /// The checks, in the order of the path of the message.
        pub checks: Vec<CheckView>,
        /// The command or the setting that solves the problem; absent if the message was delivered or sent.
        pub remedy: Option<String>,
    }
}

impl Example for CheckView {
    fn example() -> Self {
        let at = hub_core::time::Timestamp::from_millis(1_763_717_400_000);
        Self { name: CheckName::Filter, ok: false, why: "keywords".to_owned(), at: Some(Time(at)) }
    }
}

impl Example for ExplanationView {
    fn example() -> Self {
        Self {
            message_id: hub_core::id::Id::from_u128(0x019a_a000_0000_7000_8000_0000_0000_0004).into(),
            channel_id: Some(hub_core::id::Id::from_u128(0x019a_a000_0000_7000_8000_0000_0000_0002).into()),
            trace_id: Some(hub_core::id::Id::from_u128(0x019a_a000_0000_7000_8000_0000_0000_0003).into()),
            verdict: Verdict::Filtered,
            sentence: "The filter of the channel orders did not match: keywords.".to_owned(),
            checks: vec![CheckView::example()],
            remedy: Some(
                "Change the filter: `hub-cli channels set-filter orders --bot demo --keywords order`."
                    .to_owned(),
            ),
        }
    }
}

#[OpenApi(tag = "Tag::Bots")]
impl ExplanationApi {
    /// Explains why a message did or did not arrive
    ///
    /// A verdict from what is stored: the bot, the channel, the newest trace and its deliveries. Each verdict but
    /// `delivered` and `sent` has a `remedy`.
    #[oai(
        path = "/api/bots/:id/messages/:messageId/explain",
        method = "get",
        operation_id = "explainMessage"
    )]
    async fn explain(
        &self,
        hub: Data<&Hub>,
        user: User,
        /// Id of the bot.
        id: Path<BotId>,
        /// Id of the message.
        #[oai(name = "messageId")]
        message_id: Path<MessageId>,
        /// The channel to explain; the one with the worst outcome if absent.
        channel_id: Query<Option<ChannelId>>,
    ) -> ApiResult<ExplanationView> {
        let channel = channel_id.0.map(|id| id.0);
        ok(hub.traces().explain(&user.0, id.0.0, message_id.0.0, channel).await?.into())
    }
}
