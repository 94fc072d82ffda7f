//! Replies of plugins: texts, and files in four spellings.

use bytes::Bytes;
use data_url::{DataUrl, forgiving_base64};
use http::header;

use crate::{
    body_text,
    delivery::{
        plugins::Installed,
        stage::{Reply, ReplyContent, ReplyFile},
    },
    egress::{BodyEnd, Receipt},
    model::{cause::Cause, trace::StepKind},
    plugins::request,
    sandbox::{self, HookOutcome},
};

/// The replies that a hook made; with the answer it saw, if it saw one. One reply is one row keyed by the delivery,
/// the plugin, the hook and its place: a run that is made again adds none.
pub(super) fn taken(plugin: &Installed, outcome: &mut HookOutcome, answer: Option<&Receipt>) -> Vec<Reply> {
    let place = if answer.is_none() { 'q' } else { 's' };
    let key = |n: usize| format!("{}.{place}.{n}", plugin.plugin_id);
    let made = std::mem::take(&mut outcome.replies).into_iter().enumerate();
    made.map(|(n, reply)| Reply { key: key(n), by: StepKind::Plugin, content: content(reply, answer) })
        .collect()
}

fn content(reply: sandbox::Reply, answer: Option<&Receipt>) -> ReplyContent {
    match reply {
        sandbox::Reply::Text(text) => ReplyContent::Text(text),
        sandbox::Reply::DataUri(uri) => data_uri(&uri, String::new()),
        // Some authors put the whole URI there.
        sandbox::Reply::File { base64, filename } if base64.starts_with("data:") => {
            data_uri(&base64, filename)
        }
        sandbox::Reply::File { base64, filename } => {
            match forgiving_base64::decode_to_vec(base64.as_bytes()) {
                Ok(bytes) => file(filename, None, bytes.into()),
                Err(_) => ReplyContent::Unsendable(Cause::FileNotBase64),
            }
        }
        sandbox::Reply::Forward => {
            answer.map_or(ReplyContent::Unsendable(Cause::NothingToForward), forwarded)
        }
    }
}

fn data_uri(uri: &str, file_name: String) -> ReplyContent {
    let Ok(url) = DataUrl::process(uri) else {
        return ReplyContent::Unsendable(Cause::DataUriUnreadable);
    };
    let content_type = format!("{}/{}", url.mime_type().type_, url.mime_type().subtype);
    match url.decode_to_vec() {
        Ok((bytes, _)) => file(file_name, Some(content_type), bytes.into()),
        Err(_) => ReplyContent::Unsendable(Cause::DataUriNotBase64),
    }
}

/// The receiver's answer as it is: a text, or a file.
fn forwarded(answer: &Receipt) -> ReplyContent {
    let Receipt { headers, body, end, .. } = answer;
    match end {
        BodyEnd::Complete => {}
        BodyEnd::Cut { .. } => return ReplyContent::Unsendable(Cause::ForwardTooLarge),
        BodyEnd::Broken(_) => return ReplyContent::Unsendable(Cause::ForwardIncomplete),
    }
    if request::is_text(headers, body) {
        return ReplyContent::Text(body_text::decode(headers, body).into_owned());
    }
    let said = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    file(String::new(), said.map(str::to_owned), body.clone())
}

fn file(file_name: String, content_type: Option<String>, bytes: Bytes) -> ReplyContent {
    ReplyContent::File(ReplyFile { caption: String::new(), file_name, content_type, bytes })
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, StatusCode};

    use super::*;

    fn read(reply: sandbox::Reply) -> ReplyContent {
        content(reply, None)
    }

    fn base64(base64: &str, filename: &str) -> sandbox::Reply {
        sandbox::Reply::File { base64: base64.to_owned(), filename: filename.to_owned() }
    }

    #[test]
    fn files_come_as_base64_and_as_uris() {
        let png = file("a.png".to_owned(), None, Bytes::from_static(&[0, 1, 2, 3]));
        for spelling in ["AAECAw==", "AAECAw", " AAEC\nAw== "] {
            assert_eq!(read(base64(spelling, "a.png")), png, "{spelling}");
        }
        let typed = |name: &str, media_type: &str, bytes: &'static [u8]| {
            file(name.to_owned(), Some(media_type.to_owned()), Bytes::from_static(bytes))
        };
        assert_eq!(
            read(base64("data:image/png;base64,AAECAw==", "a.png")),
            typed("a.png", "image/png", &[0, 1, 2, 3])
        );
        for (uri, media_type, bytes) in [
            ("data:image/png;base64,AAECAw", "image/png", &[0, 1, 2, 3][..]),
            ("data:text/csv;charset=utf-8,a%2Cb", "text/csv", b"a,b"),
            ("data:,x", "text/plain", b"x"),
        ] {
            assert_eq!(read(sandbox::Reply::DataUri(uri.to_owned())), typed("", media_type, bytes), "{uri}");
        }
    }

    #[test]
    fn an_unreadable_attachment_is_reported() {
        for reply in [
            base64("?", "a.png"),
            base64("data:image/png;base64,?", ""),
            sandbox::Reply::DataUri("data:image/png;base64,AAE=AA".to_owned()),
            sandbox::Reply::DataUri("data:image/png".to_owned()),
            sandbox::Reply::Forward,
        ] {
            let read = read(reply.clone());
            assert!(matches!(read, ReplyContent::Unsendable(_)), "{reply:?}: {read:?}");
        }
    }

    #[test]
    fn an_answer_is_forwarded_as_what_it_is() {
        let receipt = |content_type: &'static str, body: &'static [u8], end| {
            let body = Bytes::from_static(body);
            let value = HeaderValue::from_static(content_type);
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, value)]);
            Receipt { status: StatusCode::OK, headers, body, end }
        };
        let forward = |receipt: &Receipt| content(sandbox::Reply::Forward, Some(receipt));
        let text = receipt("text/plain; charset=gbk", b"\xc4\xe3\xba\xc3", BodyEnd::Complete);
        assert_eq!(forward(&text), ReplyContent::Text("你好".to_owned()));
        let image = receipt("image/png", b"\x89PNG", BodyEnd::Complete);
        let sent = file(String::new(), Some("image/png".to_owned()), image.body.clone());
        assert_eq!(forward(&image), sent);
        let cut = receipt("image/png", b"\x89PNG", BodyEnd::Cut { limit: 4 });
        assert_eq!(forward(&cut), ReplyContent::Unsendable(Cause::ForwardTooLarge));
    }
}
