//! Permissions of a plugin, as shown to reviewers and to users who install it.

use super::{connect, manifest::Manifest};

/// Permissions of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Default, hub_macros::Api)]
#[api(example = {
    "connects": [],
    "grants": ["reply", "skip"],
    "matches": ["text"],
    "timeout_ms": 5000,
    "words": ["reads messages of these types: text"],
})]
pub struct Permissions {
    /// Functions it may call: `reply`, `skip`.
    pub grants: Vec<String>,
    /// Messages for which it runs.
    pub matches: Vec<String>,
    /// Hosts that it may connect to: names with their subdomains; addresses and single labels exactly.
    pub connects: Vec<String>,
    /// Time limit of a hook, in milliseconds.
    pub timeout_ms: u32,
    /// The permissions in words.
    pub words: Vec<String>,
}

impl From<&Manifest> for Permissions {
    fn from(manifest: &Manifest) -> Self {
        let grants = [("reply", manifest.grants.reply), ("skip", manifest.grants.skip)];
        Self {
            grants: grants
                .iter()
                .filter(|(_, granted)| *granted)
                .map(|(name, _)| (*name).to_owned())
                .collect(),
            matches: manifest.matches.as_written(),
            connects: manifest.connects.clone(),
            timeout_ms: manifest.timeout.as_millis(),
            words: words(manifest),
        }
    }
}

fn words(manifest: &Manifest) -> Vec<String> {
    let matches = manifest.matches.as_written();
    let mut words = vec![
        if matches.iter().any(|rule| rule == "*") {
            "reads every message of the channel".to_owned()
        } else {
            let (expressions, kinds): (Vec<_>, Vec<_>) =
                matches.iter().partition(|rule| rule.starts_with("expr:"));
            let kinds: Vec<&str> = kinds.into_iter().map(String::as_str).collect();
            let mut which = Vec::new();
            if !kinds.is_empty() {
                which.push(format!("of these types: {}", kinds.join(", ")));
            }
            which.extend(
                expressions.iter().map(|rule| format!("for which this is true: {}", rule[5..].trim())),
            );
            format!("reads messages {}", which.join(", or "))
        },
        "changes the webhook request: its address, headers and body".to_owned(),
    ];
    if manifest.connects.is_empty() {
        words.push("sends nothing to any other host than the webhook's".to_owned());
    } else {
        let (exact, names): (Vec<&String>, Vec<_>) =
            manifest.connects.iter().partition(|entry| connect::is_exact(entry));
        let listed =
            |hosts: &[&String]| hosts.iter().map(|host| host.as_str()).collect::<Vec<_>>().join(", ");
        if !names.is_empty() {
            let hosts = listed(&names);
            words.push(format!("may send message content to these hosts and their sub-domains: {hosts}"));
        }
        if !exact.is_empty() {
            words.push(format!("may send message content to these hosts: {}", listed(&exact)));
        }
    }
    match (manifest.grants.reply, manifest.grants.skip) {
        (true, true) => words.push("replies to the sender, and keeps messages from the webhook".to_owned()),
        (true, false) => words.push("replies to the sender".to_owned()),
        (false, true) => words.push("keeps messages from the webhook".to_owned()),
        (false, false) => {}
    }
    words.push(format!(
        "takes up to {} ms for each message, before and after the request",
        manifest.timeout.as_millis()
    ));
    words
}
