//! Media types of files, derived from their first bytes and their names. Nothing is decoded: the bytes are untrusted.

/// The media type of unknown bytes.
pub const UNKNOWN: &str = "application/octet-stream";
/// Longest name of a file, in characters.
pub const MAX_NAME: usize = 200;

/// Offset, first bytes, and media type.
const MAGIC: [(usize, &[u8], &str); 17] = [
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"BM", "image/bmp"),
    (4, b"ftypheic", "image/heic"),
    (4, b"ftypavif", "image/avif"),
    (0, b"#!SILK_V3", "audio/silk"),
    (1, b"#!SILK_V3", "audio/silk"), // The network's own variant has a byte in front.
    (0, b"#!AMR", "audio/amr"),
    (0, b"OggS", "audio/ogg"),
    (0, b"ID3", "audio/mpeg"),
    (8, b"WAVE", "audio/wav"),
    (4, b"ftyp", "video/mp4"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"PK\x03\x04", "application/zip"),
];

/// Name extensions and their media types.
const ENDINGS: [(&str, &str); 27] = [
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("png", "image/png"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("bmp", "image/bmp"),
    ("heic", "image/heic"),
    ("avif", "image/avif"),
    ("silk", "audio/silk"),
    ("amr", "audio/amr"),
    ("ogg", "audio/ogg"),
    ("mp3", "audio/mpeg"),
    ("m4a", "audio/mp4"),
    ("wav", "audio/wav"),
    ("mp4", "video/mp4"),
    ("mov", "video/quicktime"),
    ("pdf", "application/pdf"),
    ("zip", "application/zip"),
    ("json", "application/json"),
    ("csv", "text/csv"),
    ("txt", "text/plain"),
    ("md", "text/markdown"),
    ("html", "text/html"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
];

/// Returns the media type of the first bytes.
pub fn of_bytes(bytes: &[u8]) -> Option<&'static str> {
    let fits =
        |(at, magic, _): &&(usize, &[u8], &str)| bytes.get(*at..).is_some_and(|rest| rest.starts_with(magic));
    MAGIC.iter().find(fits).map(|(_, _, media_type)| *media_type)
}

/// Returns the media type of a name's extension.
pub fn of_name(name: &str) -> Option<&'static str> {
    let (_, ending) = name.rsplit_once('.')?;
    ENDINGS.iter().find(|(known, _)| known.eq_ignore_ascii_case(ending)).map(|(_, media_type)| *media_type)
}

/// Returns the usual extension of a media type; `bin` for unknown ones.
pub fn ending(media_type: &str) -> &'static str {
    ENDINGS.iter().find(|(_, known)| *known == media_type).map_or("bin", |(ending, _)| ending)
}

/// Whether bytes start like a picture.
pub fn looks_like_image(bytes: &[u8]) -> bool {
    of_bytes(bytes).is_some_and(|media_type| media_type.starts_with("image/"))
}

/// Whether bytes may have a media type. A type with known first bytes requires them, except `audio/mpeg`; any other
/// type may have any bytes.
pub fn may_be(bytes: &[u8], media_type: &str) -> bool {
    let known = MAGIC.iter().any(|(_, _, known)| *known == media_type);
    !known || media_type == "audio/mpeg" || of_bytes(bytes) == Some(media_type)
}

/// The part of a media type before its parameters, in lower case, if it is one: `type/subtype`, at most 100
/// characters.
pub fn essence(text: &str) -> Option<String> {
    let essence = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let token = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&b))
    };
    let (kind, subtype) = essence.split_once('/')?;
    (essence.len() <= 100 && token(kind) && token(subtype)).then_some(essence)
}

/// Returns a name without directories and invisible characters, shortened to [`MAX_NAME`]; `fallback` when nothing is
/// left.
pub fn clean_name(name: &str, fallback: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let seen = |c: &char| {
        !c.is_control()
            && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut clean: String = last.chars().filter(seen).collect();
    let extra = clean.chars().count().saturating_sub(MAX_NAME);
    if extra > 0 {
        // Keep the end, which has the extension.
        clean = clean.chars().skip(extra).collect();
    }
    let clean = clean.trim().trim_start_matches('.');
    if clean.is_empty() { fallback.to_owned() } else { clean.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_a_file_follows_from_its_first_bytes_and_its_extension() {
        for (bytes, expected) in [
            (&b"\xff\xd8\xff\xe0"[..], Some("image/jpeg")),
            (b"RIFF0000WEBPVP8 ", Some("image/webp")),
            (b"\x02#!SILK_V3", Some("audio/silk")),
            (b"#!SILK_V3", Some("audio/silk")),
            (b"\0\0\0\x18ftypisom", Some("video/mp4")),
            (b"hello", None),
            (b"", None),
        ] {
            assert_eq!(of_bytes(bytes), expected);
        }
        assert_eq!(
            (of_name("Offer.PDF"), of_name("offer"), of_name("a.b")),
            (Some("application/pdf"), None, None)
        );
        assert_eq!((ending("image/jpeg"), ending("x/y")), ("jpg", "bin"));
        assert!(may_be(b"text", "text/plain") && may_be(b"%PDF-1", "application/pdf"));
        assert!(!may_be(b"<script>", "image/png") && !may_be(b"", "image/jpeg"));
    }

    #[test]
    fn names_are_only_names() {
        for (name, clean) in [
            ("offer v2.pdf", "offer v2.pdf"),
            ("../../etc/passwd", "passwd"),
            (r"C:\windows\x.exe", "x.exe"),
            ("a\0b\r\nc.txt", "abc.txt"),
            ("\u{202e}fdp.exe", "fdp.exe"),
            ("..", "file"),
            ("报价.pdf", "报价.pdf"),
            ("", "file"),
        ] {
            assert_eq!(clean_name(name, "file"), clean, "{name:?}");
        }
        assert_eq!(clean_name(&format!("{}.txt", "x".repeat(4_096)), "").chars().count(), MAX_NAME);
        for (text, read) in [
            ("image/PNG; q=1", Some("image/png")),
            ("image", None),
            ("a/b\r\n", Some("a/b")),
            ("a b/c", None),
            ("/x", None),
        ] {
            assert_eq!(essence(text).as_deref(), read, "{text:?}");
        }
    }
}
