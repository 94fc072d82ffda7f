//! QR codes: a text to be scanned, drawn for a page or a terminal.

use qrcode::{Color, EcLevel, QrCode, render::svg, render::unicode::Dense1x2};

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
    // Blocks are drawn in the text colour: light modules get them, so that the code is not inverted.
    draw(text, Dense1x2::Light, Dense1x2::Dark)
}

/// The same for a terminal with dark text on a light background.
///
/// # Errors
/// As [`qr_svg`].
pub fn qr_text_art_on_light(text: &str) -> Result<String> {
    draw(text, Dense1x2::Dark, Dense1x2::Light)
}

/// The code as an image: its side in modules, quiet zone of four included, and for each module, row by row, whether it
/// is dark.
///
/// # Errors
/// As [`qr_svg`].
pub fn qr_modules(text: &str) -> Result<(usize, Vec<bool>)> {
    const QUIET: usize = 4;
    let code = encode(text)?;
    let (inner, colors) = (code.width(), code.to_colors());
    let side = inner + 2 * QUIET;
    let mut modules = vec![false; side * side];
    for (index, color) in colors.into_iter().enumerate() {
        let at = (index / inner + QUIET) * side + index % inner + QUIET;
        modules[at] = color == Color::Dark;
    }
    Ok((side, modules))
}

fn draw(text: &str, dark: Dense1x2, light: Dense1x2) -> Result<String> {
    let code = encode(text)?;
    Ok(code.render::<Dense1x2>().dark_color(dark).light_color(light).quiet_zone(true).build())
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
