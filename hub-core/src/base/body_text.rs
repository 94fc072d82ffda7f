//! Text of bodies that come from outside, decoded as browsers decode it.

use std::borrow::Cow;

use encoding_rs::{Encoding, GB18030, GBK, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use http::{HeaderMap, header};

/// Bytes of a page in which it may declare its own encoding, as the HTML standard has it.
const PRESCANNED: usize = 1024;

/// Decodes a body: by its byte order mark, else by the `charset` of `Content-Type`, else by the declaration inside a
/// page, else as UTF-8. A `charset` that does not exist is ignored. Bytes that are no text are replaced by U+FFFD.
pub fn decode<'b>(headers: &HeaderMap, body: &'b [u8]) -> Cow<'b, str> {
    encoding_of(headers, body).decode(body).0
}

/// Decodes a body as [`decode`] does; `None` when it has bytes that are no text in its encoding.
pub fn decode_strictly<'b>(headers: &HeaderMap, body: &'b [u8]) -> Option<Cow<'b, str>> {
    let (text, _, is_malformed) = encoding_of(headers, body).decode(body);
    (!is_malformed).then_some(text)
}

/// The media type of a body without its parameters, in lower case; empty when there is none.
pub fn media_type(headers: &HeaderMap) -> String {
    content_type(headers).split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// `Content-Type` with bytes that are no text replaced; of several the last, as browsers do.
fn content_type(headers: &HeaderMap) -> Cow<'_, str> {
    let last = headers.get_all(header::CONTENT_TYPE).iter().next_back();
    last.map_or(Cow::Borrowed(""), |value| String::from_utf8_lossy(value.as_bytes()))
}

fn encoding_of(headers: &HeaderMap, body: &[u8]) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return encoding;
    }
    match charset(&content_type(headers)).or_else(|| declared(headers, body)) {
        // Many servers add it to whatever they send, and text in it is hardly ever valid UTF-8 by chance.
        Some(encoding) if encoding == WINDOWS_1252 && std::str::from_utf8(body).is_ok() => UTF_8,
        // The superset.
        Some(encoding) if encoding == GBK => GB18030,
        Some(encoding) if encoding == UTF_16LE || encoding == UTF_16BE => utf_16(body).unwrap_or(encoding),
        Some(encoding) => encoding,
        None => utf_16(body).unwrap_or(UTF_8),
    }
}

/// The encoding of a `charset` parameter, if it exists.
fn charset(content_type: &str) -> Option<&'static Encoding> {
    let mut parameters = content_type.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let (_, label) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
    labelled(label)
}

fn labelled(label: &str) -> Option<&'static Encoding> {
    let label = label.trim().trim_matches(['"', '\'']);
    // A name of databases that reaches headers.
    let label = if label.eq_ignore_ascii_case("utf8mb4") { "utf-8" } else { label };
    Encoding::for_label_no_replacement(label.as_bytes())
}

/// The encoding that a page declares within itself: `<meta charset="gbk">` or `<?xml encoding="GBK"?>`.
fn declared(headers: &HeaderMap, body: &[u8]) -> Option<&'static Encoding> {
    let media_type = media_type(headers);
    if !media_type.contains("html") && !media_type.contains("xml") {
        return None;
    }
    let head = String::from_utf8_lossy(&body[..body.len().min(PRESCANNED)]).to_ascii_lowercase();
    let mut tags = head.split('<').filter(|tag| tag.starts_with("meta") || tag.starts_with("?xml"));
    tags.find_map(|tag| {
        let (_, value) = tag.split_once("charset").or_else(|| tag.split_once("encoding"))?;
        let value = value.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
        let end = value.find(['"', '\'', '>', ';', ' ', '?', '/']).unwrap_or(value.len());
        labelled(&value[..end])
    })
}

/// UTF-16 without a mark, which the zeros of its first characters tell, as those of JSON always do.
fn utf_16(body: &[u8]) -> Option<&'static Encoding> {
    match body.first_chunk()?.map(|byte: u8| byte == 0) {
        [true, false, true, false] => Some(UTF_16BE),
        [false, true, false, true] => Some(UTF_16LE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn typed(content_type: &str) -> HeaderMap {
        let value = HeaderValue::from_bytes(content_type.as_bytes()).unwrap();
        HeaderMap::from_iter([(header::CONTENT_TYPE, value)])
    }

    fn encoded(label: &str, text: &str) -> Vec<u8> {
        Encoding::for_label(label.as_bytes()).unwrap().encode(text).0.into_owned()
    }

    fn utf_16_bytes(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn text_is_decoded_by_the_charset_of_its_type() {
        for (content_type, label, text) in [
            ("text/plain; charset=gbk", "gbk", "你好，世界"),
            ("text/plain; charset=GB2312", "gbk", "订单"),
            ("application/json;charset=gb18030", "gb18030", "𠮷野家"),
            ("text/html; charset=big5", "big5", "中文"),
            ("text/html; charset=\"Shift_JIS\"", "shift_jis", "日本語"),
            ("text/plain;format=flowed; Charset = 'euc-kr'", "euc-kr", "한국어"),
            ("text/plain; charset=iso-8859-1", "windows-1252", "café"),
            ("text/plain; charset=koi8-r", "koi8-r", "привет"),
            ("text/plain; charset=utf8", "utf-8", "ü"),
            ("text/plain; charset=utf8mb4", "utf-8", "ü"),
            ("text/plain; charset=no-such-charset", "utf-8", "ü"),
            ("text/plain; charset=", "utf-8", "ü"),
            ("text/plain; charset=iso-8859-1", "utf-8", "你好"),
            ("", "utf-8", "你好"),
        ] {
            let bytes = encoded(label, text);
            assert_eq!(decode(&typed(content_type), &bytes), text, "{content_type}");
            assert_eq!(
                decode_strictly(&typed(content_type), &bytes).as_deref(),
                Some(text),
                "{content_type}"
            );
        }
    }

    #[test]
    fn a_byte_order_mark_decides_and_is_removed() {
        let text = "{\"a\":\"é\"}";
        let marked = format!("\u{feff}{text}");
        let typed = typed("application/json; charset=gbk");
        assert_eq!(decode(&typed, marked.as_bytes()), text);
        assert_eq!(decode(&typed, &utf_16_bytes(&marked, u16::to_le_bytes)), text);
        assert_eq!(decode(&typed, &utf_16_bytes(&marked, u16::to_be_bytes)), text);
    }

    #[test]
    fn utf_16_without_a_mark_is_recognised() {
        let text = "{\"reply\":\"你好\"}";
        for content_type in ["", "application/json", "text/plain; charset=utf-16"] {
            let typed = typed(content_type);
            assert_eq!(decode(&typed, &utf_16_bytes(text, u16::to_le_bytes)), text, "{content_type}");
            assert_eq!(decode(&typed, &utf_16_bytes(text, u16::to_be_bytes)), text, "{content_type}");
        }
    }

    #[test]
    fn a_page_declares_its_own_encoding() {
        for page in [
            "<html><head><meta charset=\"gbk\"><p>你好",
            "<meta http-equiv='Content-Type' content='text/html; charset=GB2312'>你好",
            "<?xml version='1.0' encoding='GBK'?><a>你好</a>",
        ] {
            assert_eq!(decode(&typed("text/html"), &encoded("gbk", page)), page);
        }
        let plain = "<meta charset=gbk>你好";
        assert_eq!(decode(&typed("text/plain"), plain.as_bytes()), plain, "only pages are searched");
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_or_refused() {
        for (content_type, bytes) in
            [("", &b"a\xff\xfeb"[..]), ("text/plain; charset=gbk", b"a\xffb"), ("image/png", b"\x89PNG")]
        {
            assert!(decode(&typed(content_type), bytes).contains('\u{fffd}'), "{content_type}");
            assert_eq!(decode_strictly(&typed(content_type), bytes), None, "{content_type}");
        }
    }
}
