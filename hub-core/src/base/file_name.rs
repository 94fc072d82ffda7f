//! Names of files in headers and URLs, in every encoding in which programs write them.

use std::borrow::Cow;

use encoding_rs::{Encoding, GB18030, UTF_8, WINDOWS_1252};

/// Parts of a name that is continued over several parameters, as in mail.
const MAX_PARTS: usize = 20;

/// Reads the file name of a `Content-Disposition`: `filename*` (RFC 8187), else `filename`, which may be in UTF-8,
/// GB 18030 or Latin-1, percent-encoded, or made of encoded words (RFC 2047). Folders before the name are removed.
/// `None` when there is no name.
pub fn of_disposition(value: &[u8]) -> Option<String> {
    let parameters = parameters(value);
    let find = |wanted: &str| parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| &**value);
    let found = find("filename*")
        .and_then(extended)
        .or_else(|| continued(&parameters))
        .or_else(|| find("filename").map(plain))?;
    let name = found.rsplit(['/', '\\']).next().unwrap_or_default().trim();
    (!name.is_empty()).then(|| name.to_owned())
}

/// The last segment of a URL's path, percent-decoded; empty when there is none.
pub fn of_url(url: &url::Url) -> String {
    let last = url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default();
    decoded(&percent_decoded(last.as_bytes())).into_owned()
}

/// Names in lower case and values of the parameters. A backslash escapes only a quote and itself: older programs write
/// whole paths of Windows.
fn parameters(value: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    // Some programs leave out what comes before the parameters.
    let has_type = !value.split(|byte| *byte == b';').next().is_some_and(|first| first.contains(&b'='));
    let whole = if has_type { Cow::Borrowed(value) } else { Cow::Owned([b";", value].concat()) };
    let mut rest = &*whole;
    while let Some(start) = rest.iter().position(|byte| *byte == b';') {
        rest = &rest[start + 1..];
        let Some(equals) = rest.iter().position(|byte| matches!(byte, b'=' | b';')) else { break };
        if rest[equals] == b';' {
            rest = &rest[equals..];
            continue;
        }
        let name = String::from_utf8_lossy(rest[..equals].trim_ascii()).to_ascii_lowercase();
        rest = rest[equals + 1..].trim_ascii_start();
        let (text, length) = if rest.first() == Some(&b'"') { quoted(rest) } else { token(rest) };
        found.push((name, text));
        rest = &rest[length..];
    }
    found
}

/// A quoted value, and how many bytes it takes with its quotes. One that is not closed ends with the header.
fn quoted(rest: &[u8]) -> (Vec<u8>, usize) {
    let mut text = Vec::new();
    let mut at = 1;
    while let Some(&byte) = rest.get(at) {
        match (byte, rest.get(at + 1)) {
            (b'"', _) => return (text, at + 1),
            (b'\\', Some(&escaped @ (b'"' | b'\\'))) => {
                text.push(escaped);
                at += 1;
            }
            _ => text.push(byte),
        }
        at += 1;
    }
    (text, rest.len())
}

/// A value without quotes, which may contain spaces.
fn token(rest: &[u8]) -> (Vec<u8>, usize) {
    let end = rest.iter().position(|byte| *byte == b';').unwrap_or(rest.len());
    (rest[..end].trim_ascii().to_vec(), end)
}

/// `UTF-8''na%C3%AFve.txt`; without charset and language it is taken for UTF-8.
fn extended(value: &[u8]) -> Option<String> {
    let mut parts = value.splitn(3, |byte| *byte == b'\'');
    let (charset, rest) = match (parts.next(), parts.next(), parts.next()) {
        (Some(charset), Some(_), Some(rest)) => (Encoding::for_label(charset), rest),
        _ => (None, value),
    };
    let bytes = percent_decoded(rest.trim_ascii());
    let text = match charset {
        Some(charset) => charset.decode_without_bom_handling_and_without_replacement(&bytes)?,
        None => decoded(&bytes),
    };
    (!text.trim().is_empty()).then(|| text.trim_matches('"').to_owned())
}

/// `filename*0*=UTF-8''a%20; filename*1=b` (RFC 2231).
fn continued(parameters: &[(String, Vec<u8>)]) -> Option<String> {
    let mut whole = Vec::new();
    for part in 0..MAX_PARTS {
        let name = format!("filename*{part}");
        let find = |suffix: &str| {
            let mut all = parameters.iter();
            all.find(|(other, _)| other.strip_prefix(&name) == Some(suffix)).map(|(_, value)| value)
        };
        match (find("*"), find("")) {
            (Some(encoded), _) => whole.extend_from_slice(encoded),
            // What is not encoded must not be decoded with the rest.
            (None, Some(plain)) => {
                whole.extend(plain.iter().flat_map(|byte| match byte {
                    b'%' => b"%25".to_vec(),
                    byte => vec![*byte],
                }));
            }
            (None, None) => break,
        }
    }
    extended(&whole)
}

fn plain(value: &[u8]) -> String {
    let text = decoded(value);
    if let Some(words) = encoded_words(&text) {
        return words;
    }
    // A name that looks like one of a URL: nothing in it needs encoding, and it decodes to text.
    let is_of_url = text.bytes().all(|byte| byte.is_ascii_graphic());
    let bytes = percent_decoded(value);
    match String::from_utf8(bytes) {
        Ok(name) if is_of_url => name,
        _ => text.into_owned(),
    }
}

/// UTF-8, else GB 18030, else Latin-1, which is anything.
fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    let strictly =
        |encoding: &'static Encoding| encoding.decode_without_bom_handling_and_without_replacement(bytes);
    strictly(UTF_8).or_else(|| strictly(GB18030)).unwrap_or_else(|| WINDOWS_1252.decode(bytes).0)
}

/// Decodes `%41`; a `%` without two hexadecimal digits stays.
fn percent_decoded(bytes: &[u8]) -> Vec<u8> {
    percent_encoding::percent_decode(bytes).collect()
}

/// Decodes a text of encoded words, `=?gbk?B?xOO6ww==?=`, with what is between them; `None` when it has none.
fn encoded_words(text: &str) -> Option<String> {
    let mut name = String::new();
    let mut rest = text;
    let mut is_any = false;
    while let Some(start) = rest.find("=?") {
        let (before, tail) = (&rest[..start], &rest[start + 2..]);
        let mut parts = tail.splitn(3, '?');
        let word = parts.next().zip(parts.next()).zip(parts.next());
        let word = word.and_then(|((charset, way), body)| Some((charset, way, body.split_once("?=")?)));
        let Some((charset, way, (body, after))) = word else { break };
        // White space between two words is none of the text.
        if !(is_any && before.trim().is_empty()) {
            name.push_str(before);
        }
        name.push_str(&encoded_word(charset, way, body)?);
        (rest, is_any) = (after, true);
    }
    name.push_str(rest);
    is_any.then_some(name)
}

fn encoded_word(charset: &str, way: &str, body: &str) -> Option<String> {
    // A language may follow the charset.
    let label = charset.split('*').next().unwrap_or_default();
    let bytes = match way {
        "B" | "b" => data_url::forgiving_base64::decode_to_vec(body.as_bytes()).ok()?,
        "Q" | "q" => percent_decoded(body.replace('%', "%25").replace('=', "%").replace('_', " ").as_bytes()),
        _ => return None,
    };
    Some(Encoding::for_label(label.as_bytes())?.decode(&bytes).0.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(value: &[u8]) -> Option<String> {
        of_disposition(value)
    }

    #[test]
    fn names_are_read_in_every_encoding_that_programs_write() {
        for (value, expected) in [
            ("attachment; filename=plain.txt", "plain.txt"),
            ("attachment; filename=\"with space.txt\"", "with space.txt"),
            ("attachment; filename=with space.txt; size=3", "with space.txt"),
            ("attachment; filename=\"a;b.txt\"; x=y", "a;b.txt"),
            ("attachment; filename=\"a\\\"b.txt\"", "a\"b.txt"),
            ("attachment;FILENAME = \"upper.txt\"", "upper.txt"),
            ("attachment; filename=\"你好.txt\"", "你好.txt"),
            ("attachment; filename=\"old.txt\"; filename*=UTF-8''na%C3%AFve.txt", "naïve.txt"),
            ("attachment; filename*=utf-8'zh-CN'%E4%BD%A0%E5%A5%BD.txt; filename=old.txt", "你好.txt"),
            ("attachment; filename*=GBK''%C4%E3%BA%C3.txt", "你好.txt"),
            ("attachment; filename*=ISO-8859-1''caf%E9.txt", "café.txt"),
            ("attachment; filename*=%E4%BD%A0.txt", "你.txt"),
            ("attachment; filename*=\"UTF-8''%E4%BD%A0.txt\"", "你.txt"),
            ("attachment; filename*=UTF-8''%FF; filename=fallback.txt", "fallback.txt"),
            ("attachment; filename*=none''a.txt", "a.txt"),
            ("attachment; filename*0*=UTF-8''%E4%BD; filename*1*=%A0; filename*2=\"50%.txt\"", "你50%.txt"),
            ("attachment; filename=\"=?UTF-8?B?5L2g5aW9LnR4dA==?=\"", "你好.txt"),
            ("attachment; filename=\"=?gbk?b?xOM=?= =?gbk?Q?=BA=C3_a?=.txt\"", "你好 a.txt"),
            ("attachment; filename=\"=?utf-8?q?100=25?=\"", "100%"),
            ("attachment; filename=\"=?not a word\"", "=?not a word"),
            ("attachment; filename=\"%E4%BD%A0%E5%A5%BD.txt\"", "你好.txt"),
            ("attachment; filename=\"100%.txt\"", "100%.txt"),
            ("attachment; filename=\"50%20 off.txt\"", "50%20 off.txt"),
            ("attachment; filename=\"C:\\Users\\ada\\report.txt\"", "report.txt"),
            ("attachment; filename=\"../../etc/passwd\"", "passwd"),
            ("attachment; filename*=UTF-8''..%2F..%2Fpasswd", "passwd"),
            ("attachment; filename=\"not closed.txt", "not closed.txt"),
            ("form-data; name=\"file\"; filename=\"a.txt\"", "a.txt"),
            ("form-data; name=\"filename=x\"; filename=\"a.txt\"", "a.txt"),
            ("inline; ; filename=a.txt", "a.txt"),
            ("filename=\"a.txt\"", "a.txt"),
        ] {
            assert_eq!(name(value.as_bytes()).as_deref(), Some(expected), "{value}");
        }
        for (value, expected) in [
            (&b"attachment; filename=\"\xc4\xe3\xba\xc3.txt\""[..], "你好.txt"),
            (b"attachment; filename=\"caf\xe9.txt\"", "café.txt"),
            (b"attachment; filename=\xc4\xe3\xba\xc3.txt", "你好.txt"),
        ] {
            assert_eq!(name(value).as_deref(), Some(expected));
        }
        for none in [
            "",
            "attachment",
            "attachment; filename=",
            "attachment; filename=\"\"",
            "attachment; filename=\"a/\"",
        ] {
            assert_eq!(name(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn the_name_in_a_url_is_its_last_segment() {
        for (url, expected) in [
            ("https://a.example/b/c.png?x=1", "c.png"),
            ("https://a.example/%E4%BD%A0.png", "你.png"),
            ("https://a.example/%C4%E3%BA%C3.png", "你好.png"),
            ("https://a.example/a+b.png", "a+b.png"),
            ("https://a.example/b/", ""),
            ("https://a.example", ""),
        ] {
            assert_eq!(of_url(&url.parse().unwrap()), expected, "{url}");
        }
    }
}
