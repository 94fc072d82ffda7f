//! The code to be scanned, in the terminal and as an image.

use std::{fs, io, path::Path};

use hub_core::{
    Error,
    bots::qr::{qr_modules, qr_text_art, qr_text_art_on_light},
};

use crate::exit::Failure;

/// Pixels per module of an image.
const SCALE: usize = 8;

/// The code in half blocks, light on dark, or dark on light when it is inverted.
pub fn draw(text: &str, inverted: bool) -> Result<String, Error> {
    if inverted { qr_text_art_on_light(text) } else { qr_text_art(text) }
}

/// Writes the code as a PNG image, whole or not at all.
pub fn write_png(path: &Path, text: &str) -> Result<(), Failure> {
    let image = png(text)?;
    let fresh = path.with_extension(format!("{}.new", std::process::id()));
    let written = fs::write(&fresh, image).and_then(|()| fs::rename(&fresh, path));
    written.map_err(|error| Failure::file(path, error))
}

fn png(text: &str) -> Result<Vec<u8>, Error> {
    let (side, modules) = qr_modules(text)?;
    let pixels = side * SCALE;
    let luma = |at: usize| {
        let (x, y) = (at % pixels / SCALE, at / pixels / SCALE);
        if modules[y * side + x] { 0 } else { 255 }
    };
    let luma: Vec<u8> = (0..pixels * pixels).map(luma).collect();
    encode(pixels, &luma).map_err(Error::internal)
}

fn encode(pixels: usize, luma: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
    let mut image = Vec::new();
    let side = u32::try_from(pixels).map_err(io::Error::other)?;
    let mut encoder = png::Encoder::new(&mut image, side, side);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(luma)?;
    Ok(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads what is on a terminal whose text is this bright, on a background that is not.
    fn scan(art: &str, text_is_light: bool) -> Vec<String> {
        const PIXELS: usize = 4;
        let rows: Vec<Vec<char>> = art.lines().map(|line| line.chars().collect()).collect();
        let (width, height) = (rows[0].len() * PIXELS, rows.len() * 2 * PIXELS);
        let pixel = |x: usize, y: usize| {
            let is_upper = (y / PIXELS).is_multiple_of(2);
            let is_text = match rows[y / PIXELS / 2][x / PIXELS] {
                '█' => true,
                '▀' => is_upper,
                '▄' => !is_upper,
                ' ' => false,
                other => panic!("{other:?} is no half block"),
            };
            if is_text == text_is_light { 255 } else { 0 }
        };
        read(width, height, pixel)
    }

    fn read(width: usize, height: usize, pixel: impl FnMut(usize, usize) -> u8) -> Vec<String> {
        let mut image = rqrr::PreparedImage::prepare_from_greyscale(width, height, pixel);
        image.detect_grids().iter().map(|grid| grid.decode().unwrap().1).collect()
    }

    fn links() -> impl Iterator<Item = String> {
        let start = "https://x.example/?c=";
        (20..=200).step_by(9).chain([200]).map(move |length| {
            let more = (0..).map(|at| char::from(b'a' + u8::try_from(at * 7 % 26).unwrap()));
            start.chars().chain(more).take(length).collect()
        })
    }

    #[test]
    fn a_qr_reader_finds_the_link_in_the_drawing() {
        for link in links() {
            assert_eq!(scan(&draw(&link, false).unwrap(), true), [link.as_str()], "{}", link.len());
            assert_eq!(scan(&draw(&link, true).unwrap(), false), [link.as_str()], "{}", link.len());
        }
    }

    #[test]
    fn the_image_holds_the_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("code.png");
        let link = links().last().unwrap();
        write_png(&path, "something else").unwrap();
        write_png(&path, &link).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
        let file = io::BufReader::new(fs::File::open(&path).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let mut luma = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut luma).unwrap();
        let (width, height) = (usize::try_from(info.width).unwrap(), usize::try_from(info.height).unwrap());
        assert_eq!(read(width, height, |x, y| luma[y * width + x]), [link]);
        assert!(write_png(&folder.path().join("no/code.png"), "x").is_err());
    }
}
