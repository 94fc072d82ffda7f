//! Times, with the exact value for scripts, which show them relative to now and in the time zone of the browser.

use hub_core::time::Timestamp;
use maud::{Markup, html};

/// A time in UTC; `never` if there is none.
pub(in crate::console) fn time(at: Option<Timestamp>, never: &str) -> Markup {
    html! {
        @if let Some(at) = at {
            @let exact = at.to_string();
            time datetime=(exact) { (exact.get(..10).unwrap_or_default()) " " (exact.get(11..19).unwrap_or_default()) " UTC" }
        } @else {
            span.muted { (never) }
        }
    }
}

/// A span of time in its largest unit.
pub(in crate::console) fn duration(ms: u64) -> String {
    let tenths = |unit: u64, name: &str| format!("{}.{} {name}", ms / unit, ms % unit * 10 / unit);
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => tenths(1_000, "s"),
        60_000..3_600_000 => tenths(60_000, "min"),
        3_600_000..86_400_000 => tenths(3_600_000, "h"),
        _ => format!("{} d", ms / 86_400_000),
    }
}

/// A number of bytes in its largest unit.
pub(in crate::console) fn size(bytes: u64) -> String {
    let tenths = |unit: u64, name: &str| format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit);
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => tenths(1_000, "kB"),
        1_000_000..1_000_000_000 => tenths(1_000_000, "MB"),
        _ => tenths(1_000_000_000, "GB"),
    }
}
