//! The promises of this folder, through its public operations.

use tempfile::TempDir;

use super::*;
use crate::{
    Hub,
    access::{Actor, Role},
    config::HubConfig,
    error::ErrorCode,
    page::PageRequest,
    random::Random,
    store::StoreConfig,
    time::{ManualClock, Timestamp},
};

pub(super) const PASSWORD: &str = "tr0mbone solo";

pub(super) struct Fixture {
    pub(super) hub: Hub,
    pub(super) clock: ManualClock,
    folder: TempDir,
}

impl Fixture {
    pub(super) async fn new() -> Self {
        Self::with(HubConfig::default()).await
    }

    pub(super) async fn with(config: HubConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::new(Timestamp::from_millis(1_790_000_000_000));
        let hub = Hub::builder()
            .store(StoreConfig::Sqlite(folder.path().join("hub.db")))
            .secret_key([7; 32])
            .random(Random::seeded(1))
            .clock(clock.clone())
            .config(config)
            .open()
            .await
            .unwrap();
        Self { hub, clock, folder }
    }

    pub(super) fn accounts(&self) -> Accounts<'_> {
        self.hub.accounts()
    }

    pub(super) async fn register(&self, username: &str) -> Result<SignedIn> {
        self.accounts().register(new(username), None, &ClientInfo::default()).await
    }

    pub(super) async fn login(&self, username: &str, password: &str) -> Result<SignedIn> {
        self.accounts().login(username, password.into(), &ClientInfo::default()).await
    }

    pub(super) async fn actor(&self, signed_in: &SignedIn) -> Result<Actor> {
        self.accounts().authenticate_session(signed_in.token.expose()).await
    }

    pub(super) async fn sql(&self, statement: &'static str) {
        let url = self.folder.path().join("hub.db");
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(url);
        let mut conn = sqlx::ConnectOptions::connect(&options).await.unwrap();
        sqlx::query(statement).execute(&mut conn).await.unwrap();
    }

    /// Rows of a table.
    pub(super) async fn count(&self, table: &str) -> i64 {
        let url = self.folder.path().join("hub.db");
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(url);
        let mut conn = sqlx::ConnectOptions::connect(&options).await.unwrap();
        let count = sqlx::AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}"));
        sqlx::query_scalar(count).fetch_one(&mut conn).await.unwrap()
    }

    /// Whether a text is in any file of the store.
    pub(super) async fn holds(&self, text: &str) -> bool {
        let mut files = tokio::fs::read_dir(self.folder.path()).await.unwrap();
        while let Some(file) = files.next_entry().await.unwrap() {
            let bytes = tokio::fs::read(file.path()).await.unwrap();
            if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                return true;
            }
        }
        false
    }
}

pub(super) fn new(username: &str) -> NewUser {
    NewUser { username: username.into(), password: PASSWORD.into(), display_name: None, email: None }
}

pub(super) fn code<T: std::fmt::Debug>(result: Result<T>) -> ErrorCode {
    result.unwrap_err().code()
}

#[tokio::test]
async fn of_concurrent_registrations_one_is_administrator() {
    let fixture = Fixture::new().await;
    let names: Vec<_> = (0..50).map(|n| format!("user-{n}")).collect();
    let all = futures_util::future::join_all(names.iter().map(|name| fixture.register(name))).await;
    let admins = all.into_iter().filter(|one| one.as_ref().unwrap().me.user.role == Role::Admin).count();
    assert_eq!(admins, 1);
}

#[tokio::test]
async fn a_registered_user_is_signed_in_and_sees_themselves() {
    let fixture = Fixture::new().await;
    let new = NewUser {
        display_name: Some("爱丽丝".into()),
        email: Some("alice@example.org".into()),
        ..new("Alice_1")
    };
    let alice = fixture.accounts().register(new, None, &ClientInfo::default()).await.unwrap();
    let me = fixture.accounts().me(&fixture.actor(&alice).await.unwrap()).await.unwrap();
    assert_eq!(me, alice.me);
    assert_eq!((me.user.username.as_str(), me.user.display_name.as_str()), ("alice_1", "爱丽丝"));
    assert_eq!((me.user.email.as_str(), me.user.role), ("alice@example.org", Role::Admin));
    assert!(me.has_password && me.passkeys == 0 && me.oauth_accounts.is_empty());
    assert_eq!(me.user.created_at, fixture.clock.now());
    assert_eq!(fixture.register("Bob").await.unwrap().me.user.display_name, "Bob");
    assert_eq!(fixture.login("ALICE_1", PASSWORD).await.unwrap().me, me);
}

#[tokio::test]
async fn names_are_plain_unique_and_not_official() {
    let fixture = Fixture::new().await;
    fixture.register("admin").await.expect("the first user may be called admin");
    for bad in ["a", "", " alice", "al ice", "Аdmin", "adm\u{ad}in", "a\u{202e}b", "ａdmin", &"x".repeat(33)]
    {
        let error = fixture.register(bad).await.unwrap_err();
        assert_eq!((error.code(), error.details()[0].field.as_ref()), (ErrorCode::InvalidParams, "username"));
    }
    assert_eq!(code(fixture.register("ADMIN").await), ErrorCode::Conflict);
    assert_eq!(fixture.register("System").await.unwrap_err().message(), "username is reserved");
    fixture.register(&"x".repeat(32)).await.unwrap();
    assert_eq!(code(fixture.register(&"X".repeat(32)).await), ErrorCode::Conflict);
}

#[tokio::test]
async fn every_broken_field_is_named() {
    let fixture = Fixture::new().await;
    let bad = NewUser {
        username: "!".into(),
        password: "short".into(),
        display_name: Some("a\nb".into()),
        email: Some("nobody".into()),
    };
    let error = fixture.accounts().register(bad, None, &ClientInfo::default()).await.unwrap_err();
    let fields: Vec<_> = error.details().iter().map(|detail| detail.field.as_ref()).collect();
    assert_eq!(fields, ["username", "password", "display_name", "email"]);
    for bad in ["a@b@c", "@b", "a@", "a b@c.org", "a@b..org", "a@.org", "a@b.org\0", "<a@b.org>"] {
        let new = NewUser { email: Some(bad.into()), ..new("bob") };
        let error = fixture.accounts().register(new, None, &ClientInfo::default()).await.unwrap_err();
        assert_eq!(error.details()[0].field, "email", "{bad:?}");
    }
}

#[tokio::test]
async fn a_failed_login_does_not_say_why() {
    let fixture = Fixture::new().await;
    for name in ["right", "disabled", "keyless"] {
        fixture.register(name).await.unwrap();
    }
    fixture.sql("UPDATE users SET status = 'disabled' WHERE username = 'disabled'").await;
    fixture.sql("UPDATE users SET password_hash = NULL WHERE username = 'keyless'").await;
    let tries = [
        ("right", "wrong password"),
        ("right", ""),
        ("unknown", PASSWORD),
        ("disabled", PASSWORD),
        ("keyless", PASSWORD),
        ("\0", PASSWORD),
        ("right", &"x".repeat(5000)),
    ];
    for (username, password) in tries {
        let error = fixture.login(username, password).await.unwrap_err();
        assert_eq!(error.to_string(), "UNAUTHORIZED: username or password is wrong", "{username}");
        assert_eq!((error.hint(), error.details(), error.retry_after()), (None, &[][..], None));
    }
    fixture.login("right", PASSWORD).await.unwrap();
}

/// Counted, not timed: the duration reveals nothing to the caller.
#[tokio::test]
async fn a_failed_login_costs_one_hash_for_any_username() {
    let fixture = Fixture::new().await;
    for name in ["right", "disabled", "keyless"] {
        fixture.register(name).await.unwrap();
    }
    fixture.sql("UPDATE users SET status = 'disabled' WHERE username = 'disabled'").await;
    fixture.sql("UPDATE users SET password_hash = NULL WHERE username = 'keyless'").await;
    let hasher = &fixture.hub.context().passwords;
    for name in ["right", "unknown", "disabled", "keyless", "no name at all", "\0"] {
        for password in ["wrong password", "", PASSWORD] {
            if (name, password) == ("right", PASSWORD) {
                continue;
            }
            let before = hasher.computed();
            fixture.login(name, password).await.unwrap_err();
            assert_eq!(hasher.computed() - before, 1, "{name:?} {password:?}");
        }
        // Too long to be valid: rejected without a hash, for any name.
        let before = hasher.computed();
        fixture.login(name, &"x".repeat(5000)).await.unwrap_err();
        assert_eq!(hasher.computed(), before, "{name:?}");
    }
}

#[tokio::test]
async fn failed_logins_are_noted_for_users_that_exist() {
    use crate::store::audit::AuditFilter;
    let fixture = Fixture::new().await;
    let ada = fixture.register("ada").await.unwrap().me.user.id;
    fixture.login("ada", "wrong password").await.unwrap_err();
    fixture.login("a password typed as a name", "x").await.unwrap_err();
    fixture.login("nobody", "x").await.unwrap_err();
    let filter = AuditFilter { action: Some("user.login_failed".into()), ..AuditFilter::default() };
    let log = fixture.hub.admin().audit(&Actor::Operator, &filter, &PageRequest::default()).await.unwrap();
    let targets: Vec<_> = log.items.iter().map(|entry| (&*entry.actor, entry.target.clone())).collect();
    assert_eq!(targets, [("", ada.to_string())]);
}

#[tokio::test]
async fn a_user_without_a_password_sets_one_in_a_session_and_only_one_of_fifty_changes_wins() {
    let fixture = Fixture::new().await;
    let ada = fixture.register("ada").await.unwrap();
    let actor = fixture.actor(&ada).await.unwrap();
    fixture.sql("UPDATE users SET password_hash = NULL WHERE username = 'ada'").await;
    let accounts = fixture.accounts();
    let changes = (0..50).map(|n| {
        let change = NewPassword { old: None, new: format!("a new passphrase {n}").into() };
        async move { (n, accounts.change_password(&actor, change).await) }
    });
    let done = futures_util::future::join_all(changes).await;
    let won: Vec<_> = done.iter().filter(|(_, result)| result.is_ok()).map(|(n, _)| *n).collect();
    let [won] = won[..] else { panic!("{won:?} won") };
    for (n, result) in &done {
        if *n != won {
            // Some waited in vain for a hasher, the others came too late.
            let code = result.as_ref().unwrap_err().code();
            assert!(matches!(code, ErrorCode::Conflict | ErrorCode::InvalidParams | ErrorCode::RateLimited));
        }
    }
    fixture.login("ada", &format!("a new passphrase {won}")).await.unwrap();
    assert_eq!(code(fixture.actor(&ada).await), ErrorCode::Unauthorized);
}

#[tokio::test]
async fn the_kind_of_a_key_is_known_without_a_query() {
    let fixture = Fixture::new().await;
    let ada = fixture.register("ada").await.unwrap();
    let actor = fixture.actor(&ada).await.unwrap();
    let new = NewApiKey { name: "ci".into(), expires_in_days: None };
    let key = fixture.accounts().create_api_key(&actor, new, None).await.unwrap().secret;
    // A store that is closed answers no query.
    fixture.hub.shutdown().await;
    let mut flipped = key.expose().to_owned().into_bytes();
    flipped[30] = if flipped[30] == b'a' { b'b' } else { b'a' };
    let flipped = String::from_utf8(flipped).unwrap();
    for text in ["", "hubu_", &flipped, ada.token.expose(), &key.expose()[1..], &format!("{} ", key.expose())]
    {
        assert_eq!(
            code(fixture.accounts().authenticate_api_key(text).await),
            ErrorCode::InvalidToken,
            "{text}"
        );
    }
    assert_ne!(code(fixture.accounts().authenticate_api_key(key.expose()).await), ErrorCode::InvalidToken);
}

#[tokio::test]
async fn an_old_hash_is_replaced_at_login() {
    let fixture = Fixture::new().await;
    fixture.register("alice").await.unwrap();
    // argon2id of the password with 8 MiB and one pass.
    let weak = argon2::Params::new(8 * 1024, 1, 1, None).unwrap();
    let weak = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, weak);
    let weak = argon2::PasswordHasher::hash_password_with_salt(&weak, PASSWORD.as_bytes(), &[1; 16]).unwrap();
    let weak = Secret::new(weak.to_string());
    let store = &fixture.hub.context().store;
    let stored =
        async || store.read().await.unwrap().accounts().find_user_by_name("alice").await.unwrap().unwrap();
    let (alice, first) = stored().await;
    let (first, now) = (first.unwrap(), store.now());
    let old = weak.clone();
    let replace = store.write(move |tx| {
        Box::pin(async move { tx.accounts().replace_password_hash(alice.id, Some(&first), &old, now).await })
    });
    assert!(replace.await.unwrap());
    fixture.login("alice", PASSWORD).await.unwrap();
    let (_, after) = stored().await;
    assert_ne!(after.as_ref(), Some(&weak));
    assert!(after.unwrap().expose().contains("m=19456,t=2,p=1"));
    fixture.login("alice", PASSWORD).await.unwrap();
}

#[tokio::test]
async fn tokens_and_passwords_are_not_in_the_files() {
    let fixture = Fixture::new().await;
    let alice = fixture.register("alice").await.unwrap();
    for entry in std::fs::read_dir(fixture.folder.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        for secret in [PASSWORD, alice.token.expose()] {
            assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()));
        }
    }
}
