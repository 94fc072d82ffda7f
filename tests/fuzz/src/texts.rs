//! Texts that go to people: from programs and, as replies, from webhooks.

use std::sync::LazyLock;

use hub_core::{
    egress::{Egress, EgressConfig},
    network::{
        Network, TextFormat,
        ilink::{IlinkConfig, IlinkNetwork},
    },
    random::Random,
    time::{ManualClock, Timestamp},
};

/// Small, so that short inputs are cut too.
const LIMIT: usize = 200;

static NETWORK: LazyLock<IlinkNetwork> = LazyLock::new(|| {
    let egress = Egress::new(EgressConfig::default()).expect("a client without settings");
    let config = IlinkConfig { text_limit: LIMIT, ..IlinkConfig::default() };
    let clock = ManualClock::new(Timestamp::from_millis(1_790_000_000_000)).into();
    IlinkNetwork::new("ilink", config, &egress, clock, Random::seeded(1)).expect("a network")
});

/// Any text, cut into messages: each is within the network's limits and shows something, and nothing is lost,
/// doubled or reordered.
pub fn text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for format in [TextFormat::Plain, TextFormat::Markdown] {
        let parts = NETWORK.split_text(&text, format);
        assert_eq!(parts.is_empty(), text.trim().is_empty(), "{parts:?}");
        for part in &parts {
            assert!(part.chars().count() <= LIMIT && part.len() <= 16_000 && !part.trim().is_empty());
        }
        // Around code, fences are closed and opened again; and Markdown takes marks out.
        if format == TextFormat::Plain && !text.contains("```") && !text.contains("~~~") {
            let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            assert_eq!(letters(&parts.concat()), letters(&text));
        }
    }
}
