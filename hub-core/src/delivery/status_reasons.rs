//! Reasons of a bot's status that are the hub's own sentences. The console has a translation of each.

/// `degraded`: polls are answered with nothing, at once.
pub(super) const EMPTY_POLLS: &str =
    "the network answers polls at once and with nothing; the login may have lapsed";
/// `degraded`: people may see nothing of what the bot sends.
pub(super) const NO_MESSAGE_IDS: &str = "the network accepts messages without ids; people may not see them";
/// `degraded`: polls end without a response.
pub(super) const NO_RESPONSE: &str = "the network does not respond to polls";
/// `degraded`: the network reported an expired login once.
pub(super) const VERIFYING: &str = "the network reports an expired login; verifying";

/// `expired`: the network reported an expired login twice, with this reason.
pub(super) fn expired(reason: &str) -> String {
    format!("{reason}; bind the bot again")
}
