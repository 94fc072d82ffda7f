//! Values that callers put into paths, queries and headers: ids, times, handles, cursors, keys.

use hub_core::{
    channels::Handle,
    id::{BotId, ChannelId, Id, Kind, MessageId},
    page::{PageRequest, decode, encode},
    random::Random,
    secret::{Sealed, Sealer, Secret, TokenKind, new_token, parse_token},
    time::Timestamp,
};

/// An id, a time, a handle: what is read is printed the same way, and names one kind of thing.
pub fn id(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    check_id::<hub_core::id::kind::Bot>(&text);
    check_id::<hub_core::id::kind::Channel>(&text);
    check_id::<hub_core::id::kind::Message>(&text);
    let kinds = [text.parse::<BotId>().is_ok(), text.parse::<ChannelId>().is_ok()];
    assert!(kinds.iter().chain([&text.parse::<MessageId>().is_ok()]).filter(|read| **read).count() <= 1);
    if let Ok(time) = text.parse::<Timestamp>() {
        assert!((Timestamp::MIN..=Timestamp::MAX).contains(&time));
        assert_eq!(time.to_string().parse::<Timestamp>().ok(), Some(time), "{text:?}");
    }
    let (handle, message) = text.split_once('\n').unwrap_or((&text, &text));
    if let Ok(handle) = handle.parse::<Handle>() {
        assert_eq!(handle.to_string().parse::<Handle>().ok().as_ref(), Some(&handle));
        if let Some(rest) = handle.addressed(message) {
            assert!(message.ends_with(rest), "the handle changed the message");
            assert!(message.to_ascii_lowercase().contains(handle.as_str()), "no one spoke to the handle");
        }
    }
}

fn check_id<K: Kind>(text: &str) {
    let read = text.parse::<Id<K>>().ok();
    assert_eq!(read.map(|id| id.to_string()).as_deref().unwrap_or(text), text, "two spellings of one id");
    assert_eq!(read.is_some(), text.strip_prefix(K::PREFIX).is_some_and(is_ulid), "{text:?}");
    let json = serde_json::to_string(text).expect("a text is JSON");
    assert_eq!(serde_json::from_str::<Id<K>>(&json).ok(), read);
}

/// The form of an id, implemented a second time: 26 of Crockford's digits, the first of which holds three bits.
fn is_ulid(text: &str) -> bool {
    text.len() == 26
        && text.starts_with(|c| ('0'..='7').contains(&c))
        && text.chars().all(|c| c.is_ascii_digit() || (c.is_ascii_uppercase() && !"ILOU".contains(c)))
}

/// A cursor: only what the hub gave out for the same list is read, and it comes back as it was.
pub fn cursor(data: &[u8]) {
    let (list, cursor) = super::halves(data, b'\n');
    let (list, cursor) = (String::from_utf8_lossy(list), String::from_utf8_lossy(cursor));
    if let Ok(position) = decode(&list, &cursor) {
        assert_eq!(encode(&list, &position), cursor, "two spellings of one position");
        let request = PageRequest::parse(&list, None, Some(&cursor)).expect("the cursor was read before");
        assert_eq!(request.after(), Some(position.as_str()));
    }
    let made = encode(&list, &cursor);
    assert_eq!(decode(&list, &made).ok().as_deref(), Some(&*cursor));
    assert!(decode(&format!("{list}x"), &made).is_err(), "a cursor of another list was taken");
}

/// A key or a session: the one that was handed out is recognised, and nothing that differs in one place. A
/// sealed value opens as it was, or not at all.
pub fn key(data: &[u8]) {
    const KINDS: [TokenKind; 3] = [TokenKind::Session, TokenKind::ChannelKey, TokenKind::Setup];
    let text = String::from_utf8_lossy(data);
    let recognised = KINDS.iter().filter(|kind| parse_token(**kind, &text).is_some()).count();
    assert!(recognised <= 1, "a key of two kinds");
    let (seed, change) = data.split_at(data.len().min(8));
    let seed = seed.iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte));
    let random = Random::seeded(seed);
    let token = new_token(TokenKind::ChannelKey, &random);
    assert!(parse_token(TokenKind::ChannelKey, token.expose()).is_some());
    if let [at, letter, ..] = change {
        let mut changed = token.expose().as_bytes().to_vec();
        let at = usize::from(*at) % changed.len();
        if changed[at] != *letter {
            changed[at] = *letter;
            let changed = String::from_utf8_lossy(&changed);
            assert!(parse_token(TokenKind::ChannelKey, &changed).is_none(), "a mistyped key is looked up");
        }
    }
    let sealer = Sealer::new(&[7; 32], random);
    let sealed = sealer.seal("place", &Secret::new(text.as_ref()));
    assert_eq!(
        sealer.open("place", &sealed).ok().map(|secret| secret.expose().to_owned()),
        Some(text.to_string())
    );
    assert!(sealer.open("elsewhere", &sealed).is_err());
    assert!(sealer.open("place", &Sealed::from(text.to_string())).is_err(), "a forged secret was opened");
    if let Ok(sealer) = Sealer::from_text(&Secret::new(text.as_ref()), Random::seeded(1)) {
        assert_eq!(sealer.key_id().len(), 8);
    }
}
