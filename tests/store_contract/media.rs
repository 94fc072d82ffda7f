use std::time::Duration;

use hub_core::{
    id::{BotId, MediaId, MessageId, UserId},
    media::{KeptFile, MediaState},
    network::MessageKind,
    secret::Sealed,
    store::{
        media::{MediaRow, NewInboundMedia, SettledMedia, StoredBytes},
        outbox::NewPart,
    },
    time::Timestamp,
};

use super::scene::{HOSTILE_TEXTS, batch, message, outbound, stage};
use crate::support::database::{Db, START};

contract!("media": {
    files_come_with_their_messages => [of_messages, downloading, find, settle, opened_with_md5, retry],
    a_repeated_message_brings_no_second_file => [of_messages],
    a_gone_message_leaves_its_files_to_be_swept => [settle, loose, delete],
    an_upload_is_taken_once_and_in_time => [insert, begin_upload, end_upload, bytes_of],
    a_send_takes_its_file_and_no_other_send_gets_it => [insert, find, loose, rename_unsent],
    texts_are_stored_as_they_are => [insert, find],
});

const MINUTE: Duration = Duration::from_secs(60);

/// A message of ann with these files; answers their ids.
pub async fn arrives(
    db: &Db,
    on: &super::scene::Stage,
    key: &str,
    md5s: &[&str],
) -> (MessageId, Vec<MediaId>) {
    let mut message = message(db, on.bot, "ann", key, "");
    message.media = (0..)
        .zip(md5s)
        .map(|(item, md5)| NewInboundMedia {
            id: db.ids.next(),
            item,
            kind: MessageKind::File,
            file_name: format!("{key}-{item}"),
            size: 5,
            md5: (*md5).to_owned(),
            source: Sealed::from(format!("source of {key}-{item}")),
        })
        .collect();
    let ids = (message.row.id, message.media.iter().map(|file| file.id).collect());
    db.store.accept(batch(&on.lease, Some(key), vec![message])).await.unwrap();
    ids
}

async fn find(db: &Db, id: MediaId) -> MediaRow {
    db.store.read().await.unwrap().media().find(id).await.unwrap().unwrap()
}

fn settled(id: MediaId, state: MediaState, stored: Option<StoredBytes>) -> SettledMedia {
    SettledMedia { id, state, reason: None, attempts: 1, due_at: START, stored }
}

fn stored(md5: &str) -> StoredBytes {
    StoredBytes {
        size: 7,
        md5: md5.to_owned(),
        content_type: "text/plain".to_owned(),
        file_name: "named.txt".to_owned(),
        source: Some(Sealed::from(format!("opened {md5}"))),
    }
}

/// A file to be sent, until a minute after the beginning.
fn upload(db: &Db, owner_id: UserId, bot_id: BotId, state: MediaState) -> MediaRow {
    MediaRow {
        id: db.ids.next(),
        owner_id,
        bot_id,
        channel_id: None,
        message_id: None,
        item: 0,
        kind: MessageKind::Image,
        file_name: "a.png".to_owned(),
        content_type: "image/png".to_owned(),
        size: 100,
        md5: String::new(),
        state,
        reason: None,
        source: None,
        attempts: 0,
        due_at: START,
        expires_at: START + MINUTE,
        created_at: START,
    }
}

async fn files_come_with_their_messages(db: &Db) {
    let on = stage(db).await;
    let (first, files) = arrives(db, &on, "a", &["m1", ""]).await;
    let (second, others) = arrives(db, &on, "b", &["m1"]).await;
    let mut read = db.store.read().await.unwrap();
    let rows = read.media().of_messages(&[second, first]).await.unwrap();
    let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
    assert_eq!(ids, [files[0], files[1], others[0]]);
    assert!(read.media().of_messages(&[]).await.unwrap().is_empty());
    let row = &rows[1];
    assert_eq!((row.owner_id, row.bot_id, row.message_id), (on.owner, on.bot, Some(first)));
    assert_eq!((row.item, row.size, row.state), (1, 5, MediaState::Downloading));
    assert_eq!(row.source.as_ref().unwrap().as_str(), "source of a-1");
    let open = read.media().downloading(on.bot, 2).await.unwrap();
    assert_eq!(open.iter().map(|row| row.id).collect::<Vec<_>>(), files);
    drop(read);

    let (one, two) = (files[0], files[1]);
    let ready = settled(one, MediaState::Ready, Some(stored("m1")));
    let again = ready.clone();
    assert!(commit!(db, |tx| tx.media().settle(&ready).await).unwrap());
    assert!(!commit!(db, |tx| tx.media().settle(&again).await).unwrap(), "settled before");
    let row = find(db, one).await;
    assert_eq!((row.state, row.size, row.content_type.as_str()), (MediaState::Ready, 7, "text/plain"));
    assert_eq!(row.file_name, "named.txt");
    let mut later = settled(two, MediaState::Downloading, None);
    (later.reason, later.due_at) = (Some("HTTP 500".to_owned()), START + MINUTE);
    assert!(commit!(db, |tx| tx.media().settle(&later).await).unwrap());
    let failed = SettledMedia { reason: Some("gone".to_owned()), ..settled(two, MediaState::Failed, None) };
    assert!(commit!(db, |tx| tx.media().settle(&failed).await).unwrap());
    let row = find(db, two).await;
    assert_eq!((row.reason.as_deref(), row.size, row.attempts), (Some("gone"), 5, 1));

    let mut read = db.store.read().await.unwrap();
    let known = read.media().opened_with_md5(on.bot, "m1", 9).await.unwrap();
    assert_eq!(known, [(one, Sealed::from("opened m1".to_owned()))]);
    assert!(read.media().opened_with_md5(on.bot, "", 9).await.unwrap().is_empty());
    let elsewhere = db.bot(on.owner).await;
    assert!(read.media().opened_with_md5(elsewhere, "m1", 9).await.unwrap().is_empty());
    drop(read);

    assert_eq!(commit!(db, |tx| tx.media().retry(first, START).await).unwrap(), 1);
    let row = find(db, two).await;
    assert_eq!((row.state, row.attempts, row.reason), (MediaState::Downloading, 0, None));
    assert_eq!(commit!(db, |tx| tx.media().retry(first, START).await).unwrap(), 0);
}

async fn a_repeated_message_brings_no_second_file(db: &Db) {
    let on = stage(db).await;
    let (first, files) = arrives(db, &on, "a", &["m"]).await;
    let (second, _) = arrives(db, &on, "a", &["m"]).await;
    let rows = db.store.read().await.unwrap().media().of_messages(&[first, second]).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), files);
    assert_eq!(db.count("media").await, 1);
}

async fn a_gone_message_leaves_its_files_to_be_swept(db: &Db) {
    let on = stage(db).await;
    let (gone, files) = arrives(db, &on, "a", &[""]).await;
    let (_, kept) = arrives(db, &on, "b", &[""]).await;
    let file = files[0];
    assert!(db.store.read().await.unwrap().media().loose(START, 9).await.unwrap().is_empty());
    db.sql(format!("DELETE FROM messages WHERE id = '{gone}'")).await;
    let late = settled(file, MediaState::Ready, Some(stored("")));
    assert!(!commit!(db, |tx| tx.media().settle(&late).await).unwrap(), "no one wants it any more");
    let mut read = db.store.read().await.unwrap();
    assert!(read.media().downloading(on.bot, 9).await.unwrap().iter().all(|row| row.id == kept[0]));
    assert_eq!(read.media().loose(START, 9).await.unwrap(), [file]);
    let ids = [file, kept[0]];
    assert_eq!(commit!(db, |tx| tx.media().delete(&ids).await).unwrap(), 1, "the other one is held");
    assert_eq!(find(db, kept[0]).await.id, kept[0]);
    // A deleted bot takes its messages along, and they leave their files.
    db.sql(format!("DELETE FROM bots WHERE id = '{}'", on.bot)).await;
    assert_eq!(read.media().loose(START, 9).await.unwrap(), kept);
}

async fn an_upload_is_taken_once_and_in_time(db: &Db) {
    let on = stage(db).await;
    let row = upload(db, on.owner, on.bot, MediaState::Pending);
    let other = upload(db, on.owner, on.bot, MediaState::Pending);
    let (id, broken) = (row.id, other.id);
    commit!(db, |tx| tx.media().insert(&row).await).unwrap();
    commit!(db, |tx| tx.media().insert(&other).await).unwrap();
    let bytes = async || db.store.read().await.unwrap().media().bytes_of(on.owner).await.unwrap();
    assert_eq!(bytes().await, 200, "what is announced counts");
    let late = START + MINUTE;
    assert!(!commit!(db, |tx| tx.media().begin_upload(id, late).await).unwrap());
    assert!(commit!(db, |tx| tx.media().begin_upload(id, START).await).unwrap());
    assert!(!commit!(db, |tx| tx.media().begin_upload(id, START).await).unwrap(), "used");
    let done = Some((stored("m"), START + MINUTE * 2));
    let twice = done.clone();
    assert!(commit!(db, |tx| tx.media().end_upload(id, done).await).unwrap());
    assert!(!commit!(db, |tx| tx.media().end_upload(id, twice).await).unwrap());
    let row = find(db, id).await;
    assert_eq!((row.state, row.md5.as_str(), row.size), (MediaState::Ready, "m", 7));
    assert_eq!((row.expires_at, row.file_name.as_str()), (START + MINUTE * 2, "a.png"));
    assert!(commit!(db, |tx| tx.media().begin_upload(broken, START).await).unwrap());
    assert!(commit!(db, |tx| tx.media().end_upload(broken, None).await).unwrap());
    assert_eq!(find(db, broken).await.state, MediaState::Failed);
    assert_eq!(bytes().await, 7, "what failed does not count");
    let stranger = db.user("bob").await;
    assert_eq!(db.store.read().await.unwrap().media().bytes_of(stranger).await.unwrap(), 0);
}

async fn a_send_takes_its_file_and_no_other_send_gets_it(db: &Db) {
    let on = stage(db).await;
    let row = upload(db, on.owner, on.bot, MediaState::Ready);
    let kept = KeptFile { id: row.id, kind: row.kind, file_name: row.file_name.clone(), size: 100 };
    commit!(db, |tx| tx.media().insert(&row).await).unwrap();
    let rename = async |name: &'static str, kind| {
        commit!(db, |tx| tx.media().rename_unsent(kept.id, name, kind).await).unwrap();
        let row = find(db, kept.id).await;
        (row.file_name, row.kind)
    };
    assert_eq!(rename("b.bin", MessageKind::File).await, ("b.bin".to_owned(), MessageKind::File));
    let named = rename("a.png", MessageKind::Image).await;
    let part = || NewPart { file: Some(kept.clone()), ..part(db) };
    let mut first = outbound(db, on.bot, "ann", "first", &["caption"]);
    first.parts.push(part());
    let mut second = outbound(db, on.bot, "bob", "second", &[]);
    second.parts.push(part());
    let ids = [first.message_id, second.message_id];
    commit!(db, |tx| tx.outbox().enqueue(&[first, second]).await).unwrap();
    assert_eq!(rename("c.bin", MessageKind::File).await, named, "it was sent");
    let row = find(db, kept.id).await;
    assert_eq!(row.message_id, Some(ids[0]));
    assert_eq!((row.item, row.expires_at), (1, Timestamp::from_millis(0)));
    assert_eq!(db.texts("SELECT kind FROM messages ORDER BY id").await, ["image", "image"]);
    let items = db.text(format!("SELECT items FROM messages WHERE id = '{}'", ids[0])).await.unwrap();
    assert!(items.contains("caption") && items.contains("a.png"), "{items}");
    let parts = db.texts("SELECT COALESCE(media_id, '-') FROM outbox ORDER BY id").await;
    assert_eq!(parts, ["-", &kept.id.to_string(), &kept.id.to_string()]);
    assert!(db.store.read().await.unwrap().media().loose(START + MINUTE * 9, 9).await.unwrap().is_empty());
}

fn part(db: &Db) -> NewPart {
    let id = db.ids.next();
    NewPart { id, client_id: format!("c-{id}"), text: String::new(), file: None }
}

async fn texts_are_stored_as_they_are(db: &Db) {
    let on = stage(db).await;
    for text in HOSTILE_TEXTS {
        let row = MediaRow { file_name: text.to_owned(), ..upload(db, on.owner, on.bot, MediaState::Ready) };
        let id = row.id;
        commit!(db, |tx| tx.media().insert(&row).await).unwrap();
        assert_eq!(find(db, id).await.file_name, text);
    }
}
