//! One function per kind of bytes that strangers send. Each reads its input with the code of the hub and panics
//! when a promise is broken, not only when the code does. libFuzzer drives them from `fuzz_targets/`; the tests
//! replay `corpus/` through the same functions.

pub mod addresses;
pub mod answers;
pub mod completions;
pub mod filters;
pub mod headers;
pub mod hooks;
pub mod manifests;
pub mod names;
pub mod network;
pub mod passkeys;
pub mod shapes;
pub mod texts;

/// A function that takes any bytes and panics only when a promise is broken.
pub type Target = fn(&[u8]);

/// Every target, by the name of its corpus folder.
pub const TARGETS: [(&str, Target); 17] = [
    ("address", addresses::address),
    ("answer", answers::answer),
    ("batch", network::batch),
    ("completion", completions::completion),
    ("cursor", names::cursor),
    ("filter", filters::filter),
    ("headers", headers::headers),
    ("hook", hooks::hook),
    ("id", names::id),
    ("key", names::key),
    ("login", network::login),
    ("manifest", manifests::manifest),
    ("passkey", passkeys::passkey),
    ("send", network::send),
    ("text", texts::text),
    ("trace", headers::trace),
    ("url", addresses::url),
];

/// The bytes up to the first separator, and those behind it; all of them and none without one.
fn halves(data: &[u8], separator: u8) -> (&[u8], &[u8]) {
    let at = data.iter().position(|byte| *byte == separator);
    at.map_or((data, &[]), |at| (&data[..at], &data[at + 1..]))
}
