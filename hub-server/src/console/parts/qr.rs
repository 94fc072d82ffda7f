//! QR codes, drawn from their modules.

use std::fmt::Write;

use hub_core::{Result, qr::qr_modules};
use maud::{Markup, html};

/// A text as a QR code, black on white in every theme, with a description for those who cannot see it.
///
/// # Errors
/// `INVALID_PARAMS` if the text is too long for a QR code.
pub(in crate::console) fn code(text: &str, description: &str) -> Result<Markup> {
    let (side, modules) = qr_modules(text)?;
    let mut dark = String::new();
    for (index, _) in modules.iter().enumerate().filter(|(_, is_dark)| **is_dark) {
        write!(dark, "M{} {}h1v1h-1z", index % side, index / side).expect("a string takes every text");
    }
    Ok(html! {
        svg.qr viewBox={ "0 0 " (side) " " (side) } role="img" aria-label=(description) {
            rect width=(side) height=(side) fill="#fff" {}
            path d=(dark) fill="#000" {}
        }
    })
}
