//! Explanations in English.

use super::{Explanation, Finding, ReplyDelay, Verdict, finding::Because};
use crate::model::{cause::Cause, trace::DeliveryState};

impl Explanation {
    /// The verdict with its values, as an English sentence.
    pub fn sentence(&self) -> String {
        let target = self.channel_name.as_ref().map(|name| format!("the channel {name}"));
        let target = &*target.unwrap_or_else(|| "the app".to_owned());
        let cause = self.cause.as_ref().map_or_else(|| Cause::NotKnown.to_string(), ToString::to_string);
        let because = Because(self.reason());
        match self.verdict {
            Verdict::Delivered => self.delivered(target, &cause),
            Verdict::LogOnly => {
                format!("The message is in the log of {target}, where clients read it; no other sink was on.")
            }
            Verdict::Unreadable => {
                "The hub could not read this message. Its original form is stored.".to_owned()
            }
            Verdict::NoUserMessage => {
                format!(
                    "This is no message of a person ({cause}). Only messages that people write are delivered."
                )
            }
            Verdict::NoChannel => {
                "The bot had no channel when the message was received, or its traces were deleted.".to_owned()
            }
            Verdict::OlderThanChannel => {
                format!(
                    "{} was created after the message was received, and only receives later ones.",
                    capital(target)
                )
            }
            Verdict::NoTrace => {
                format!("There is no trace of the message in {target}: traces are deleted after a while.")
            }
            Verdict::ChannelOff => format!("{} was off when the message was received.", capital(target)),
            Verdict::NotAddressed => format!("The message does not mention the handle of {target}."),
            Verdict::Filtered => format!("The filter of {target} did not match: {cause}."),
            Verdict::FilterBroken => {
                format!("The filter of {target} does not work, so that nothing passes: {cause}.")
            }
            Verdict::SkippedByPlugin => format!("{}.", capital(&cause)),
            Verdict::IgnoredBySink => format!("The sink of {target} ignores this message: {cause}."),
            Verdict::PluginFailed
            | Verdict::SinkOff
            | Verdict::Gone
            | Verdict::ReceiverError
            | Verdict::Unreachable
            | Verdict::Failed => {
                let attempts = if self.attempts == 1 { "attempt" } else { "attempts" };
                format!("The delivery to {target} failed after {} {attempts}: {cause}.", self.attempts)
            }
            Verdict::ReplyFailed => {
                format!("The receiver has the message, and a reply could not be sent: {cause}.")
            }
            Verdict::Retrying => self.retrying(target, &cause),
            Verdict::Waiting => format!("The delivery to {target} waits: {cause}."),
            Verdict::Queued if self.delivery_state.is_none() => {
                format!("The delivery to {target} has not ended.")
            }
            Verdict::Queued => format!(
                "The message waits for its first attempt at {target}, behind others of its conversation or channel."
            ),
            Verdict::NoNode => {
                "No node of the hub works for the bot, so that its deliveries wait.".to_owned()
            }
            Verdict::Sent => "The chat network has the message.".to_owned(),
            Verdict::Sending => format!("The message waits for the chat network{because}."),
            Verdict::WindowClosed => format!("The message waits: {cause}."),
            Verdict::LoginExpired => {
                "The message waits: the chat network requires a new login of the bot.".to_owned()
            }
            Verdict::SendFailed => format!("The chat network refused the message{because}."),
            Verdict::SendUnknown if self.is_unconfirmed() => {
                "The chat network accepted the message without an id: the person may not see it.".to_owned()
            }
            Verdict::SendUnknown => {
                format!("It is unknown whether the chat network has the message{because}.")
            }
            Verdict::SendExpired => format!("The message waited too long and was not sent{because}."),
        }
    }

    fn delivered(&self, target: &str, cause: &str) -> String {
        if self.cause == Some(Finding::Clients) {
            return format!("Clients of {target} were connected and received the message.");
        }
        let attempt = match self.attempts {
            0 | 1 => String::new(),
            attempts => format!(", at attempt {attempts}"),
        };
        let reply = match self.reply() {
            Some(ReplyDelay::Waits(why)) => format!(" A reply waits: {why}."),
            Some(ReplyDelay::Skipped(why)) => format!(" No reply was sent: {why}."),
            None => String::new(),
        };
        format!("The message was delivered to {target}{attempt}: {cause}.{reply}")
    }

    fn retrying(&self, target: &str, cause: &str) -> String {
        let of = self.max_attempts.map_or_else(String::new, |most| format!(" of {most}"));
        let next = self.next_attempt_at.map_or_else(String::new, |at| format!(" The next one is at {at}"));
        let passed = match self.delivery_state {
            Some(DeliveryState::Parked) => "; later messages do not wait for it",
            _ => "",
        };
        format!("Attempt {}{of} at {target} failed: {cause}.{next}{passed}.", self.attempts)
    }

    /// The remedies as English sentences; `None` if there is nothing to do.
    pub fn remedy(&self) -> Option<String> {
        let sentences: Vec<_> = self.remedies.iter().map(|remedy| format!("{remedy}.")).collect();
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
