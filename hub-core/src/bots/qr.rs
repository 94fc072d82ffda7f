//! QR codes: a text to be scanned, drawn for a page or a terminal.

use qrcode::{EcLevel, QrCode, render::svg, render::unicode::Dense1x2};

use crate::error::{Error, Result};

/// The code as an SVG document with a quiet zone, black on white, at least 240 units wide.
///
/// # Errors
/// `INVALID_PARAMS` when the text is too long for a QR code (about 2,900 bytes).
pub fn qr_svg(text: &str) -> Result<String> {
    let code = encode(text)?;
    Ok(code.render::<svg::Color<'_>>().quiet_zone(true).min_dimensions(240, 240).build())
}

/// The code in half-block characters for a terminal with light text on a dark background: two modules per
/// character, quiet zone included, lines separated by `\n`.
///
/// # Errors
/// As [`qr_svg`].
pub fn qr_text_art(text: &str) -> Result<String> {
    let code = encode(text)?;
    // Blocks are drawn in the text colour: light modules get them, so that the code is not inverted.
    let image = code
        .render::<Dense1x2>()
        .dark_color(Dense1x2::Light)
        .light_color(Dense1x2::Dark)
        .quiet_zone(true)
        .build();
    Ok(image)
}

fn encode(text: &str) -> Result<QrCode> {
    [EcLevel::M, EcLevel::L]
        .into_iter()
        .find_map(|level| QrCode::with_error_correction_level(text, level).ok())
        .ok_or_else(|| Error::invalid("qr_text", "is too long for a QR code"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_drawings_are_square_and_have_a_quiet_zone() {
        let art = qr_text_art("https://example.com/x?qrcode=0123456789abcdef").unwrap();
        let lines: Vec<Vec<char>> = art.lines().map(|line| line.chars().collect()).collect();
        let width = lines[0].len();
        assert!(lines.iter().all(|line| line.len() == width));
        assert_eq!(lines.len(), width.div_ceil(2));
        assert!(lines[0].iter().all(|c| *c == '█'), "the quiet zone is light");
        let svg = qr_svg("hello").unwrap();
        assert!(svg.contains("<svg") && svg.contains("viewBox"));
        assert!(qr_svg(&"x".repeat(3000)).is_err());
    }
}
