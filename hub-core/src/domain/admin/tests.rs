//! The promises of this folder, through its public operations.

use std::time::Duration;

use futures_util::future::join_all;
use tempfile::TempDir;

use super::*;
use crate::{
    Hub,
    access::{Actor, Role},
    accounts::{NewApiKey, NewUser, SignedIn},
    error::{ErrorCode, Result},
    id::UserId,
    model::{revocation::Revoked, session::ClientInfo, user::UserStatus},
    page::PageRequest,
    random::Random,
    store::{StoreConfig, audit::AuditFilter},
    time::{ManualClock, Timestamp},
};

const PASSWORD: &str = "tr0mbone solo";

struct Fixture {
    hub: Hub,
    clock: ManualClock,
    _folder: TempDir,
}

impl Fixture {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::new(Timestamp::from_millis(1_790_000_000_000));
        let builder =
            Hub::builder().store(StoreConfig::Sqlite(folder.path().join("hub.db"))).secret_key([7; 32]);
        let hub = builder.random(Random::seeded(1)).clock(clock.clone()).open().await.unwrap();
        Self { hub, clock, _folder: folder }
    }

    async fn register(&self, username: &str) -> SignedIn {
        let new =
            NewUser { username: username.into(), password: PASSWORD.into(), display_name: None, email: None };
        self.hub.accounts().register(new, None, &ClientInfo::default()).await.unwrap()
    }

    async fn actor(&self, signed_in: &SignedIn) -> Actor {
        self.hub.accounts().authenticate_session(signed_in.token.expose()).await.unwrap()
    }

    async fn user(&self, username: &str) -> (Actor, UserId) {
        let signed_in = self.register(username).await;
        (self.actor(&signed_in).await, signed_in.me.user.id)
    }
}

fn role(role: Role) -> UserPatch {
    UserPatch { role: Some(role), ..UserPatch::default() }
}

#[tokio::test]
async fn of_fifty_admins_who_demote_each_other_one_is_left() {
    let fixture = Fixture::new().await;
    let (first, _) = fixture.user("admin-0").await;
    let mut admins = Vec::new();
    for n in 0..50 {
        let (actor, id) = fixture.user(&format!("u{n}")).await;
        fixture.hub.admin().update_user(&Actor::Operator, id, role(Role::Admin)).await.unwrap();
        admins.push((fixture.actor_again(actor).await, id));
    }
    let first_id = first.user().unwrap().user_id;
    fixture.hub.admin().update_user(&Actor::Operator, first_id, role(Role::Member)).await.unwrap();
    let admin = fixture.hub.admin();
    // Everyone demotes their neighbour at the same time.
    let acts = admins.iter().enumerate().map(|(n, (actor, _))| {
        let victim = admins[(n + 1) % admins.len()].1;
        async move { admin.update_user(actor, victim, role(Role::Member)).await }
    });
    let done = join_all(acts).await;
    let refused: Vec<ErrorCode> =
        done.into_iter().filter_map(Result::err).map(|error| error.code()).collect();
    assert_eq!(refused, [ErrorCode::Conflict]);
    let query = UserQuery { role: Some(Role::Admin), ..UserQuery::default() };
    let left = admin.users(&Actor::Operator, &query, &PageRequest::default()).await.unwrap();
    assert_eq!(left.items.len(), 1);
}

impl Fixture {
    /// The actor as the next request sees them.
    async fn actor_again(&self, actor: Actor) -> Actor {
        let user = *actor.user().unwrap();
        let found = self.hub.admin().user(&Actor::Operator, user.user_id).await.unwrap();
        Actor::User(crate::access::UserActor { role: found.user.role, ..user })
    }
}

#[tokio::test]
async fn of_fifty_tries_to_use_an_invitation_one_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = crate::config::HubConfig::default();
    config.registration = crate::config::Registration::Invite;
    let builder = Hub::builder().store(StoreConfig::Sqlite(folder.path().join("hub.db"))).secret_key([7; 32]);
    let hub = builder.config(config).open().await.unwrap();
    let invite = hub.admin().create_invite(&Actor::Operator, None, None).await.unwrap().invite;
    let (accounts, invite, client) = (hub.accounts(), &invite, &ClientInfo::default());
    let tries = (0..50).map(|n| {
        let new =
            NewUser { username: format!("u{n}"), password: PASSWORD.into(), display_name: None, email: None };
        async move { accounts.register(new, Some(invite.0.clone()), client).await }
    });
    let done = join_all(tries).await;
    assert_eq!(done.iter().filter(|one| one.is_ok()).count(), 1);
    let users = hub.admin().users(&Actor::Operator, &UserQuery::default(), &PageRequest::default()).await;
    assert_eq!(users.unwrap().items.len(), 1);
}

#[tokio::test]
async fn a_disabled_or_deleted_user_is_signed_out_and_an_event_is_published() {
    let fixture = Fixture::new().await;
    let (admin, _) = fixture.user("admin-1").await;
    let (bob, bob_id) = fixture.user("bob").await;
    let new = NewApiKey { name: "ci".into(), expires_in_days: None };
    let key = fixture.hub.accounts().create_api_key(&bob, new, None).await.unwrap().secret;
    let mut revocations = fixture.hub.revocations();
    let off = UserPatch { status: Some(UserStatus::Disabled), ..UserPatch::default() };
    fixture.hub.admin().update_user(&admin, bob_id, off).await.unwrap();
    let revoked = revocations.recv().await.unwrap();
    assert_eq!(revoked, Revoked::User(bob_id));
    assert!(revoked.concerns(&bob));
    let refused = fixture.hub.accounts().authenticate_api_key(key.expose()).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::InvalidToken);
    fixture.hub.admin().delete_user(&admin, bob_id).await.unwrap();
    assert_eq!(revocations.recv().await.unwrap(), Revoked::User(bob_id));
    assert_eq!(fixture.hub.admin().user(&admin, bob_id).await.unwrap_err().code(), ErrorCode::NotFound);
    // The log keeps the name.
    let filter = AuditFilter { target: Some(bob_id.to_string()), ..AuditFilter::default() };
    let log = fixture.hub.admin().audit(&admin, &filter, &PageRequest::default()).await.unwrap();
    let actions: Vec<_> = log.items.iter().map(|entry| (&*entry.action, &*entry.target_name)).collect();
    assert_eq!(actions, [("user.deleted", "bob"), ("user.updated", "bob"), ("user.registered", "bob")]);
}

#[tokio::test]
async fn a_refused_action_changes_nothing() {
    let fixture = Fixture::new().await;
    let (admin, id) = fixture.user("admin-1").await;
    let refused = fixture.hub.admin().update_user(&admin, id, role(Role::Member)).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Conflict);
    fixture.clock.advance(Duration::from_secs(1));
    let refused = fixture.hub.admin().delete_user(&admin, id).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Conflict);
    let found = fixture.hub.admin().user(&admin, id).await.unwrap();
    assert_eq!((found.user.role, found.user.status), (Role::Admin, UserStatus::Active));
    let log =
        fixture.hub.admin().audit(&admin, &AuditFilter::default(), &PageRequest::default()).await.unwrap();
    assert!(
        log.items
            .iter()
            .all(|entry| entry.action.starts_with("user.login") || entry.action == "user.registered")
    );
}

#[tokio::test]
async fn counters_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(Timestamp::from_millis(1_790_000_000_000));
    let open = async || {
        let builder =
            Hub::builder().store(StoreConfig::Sqlite(folder.path().join("hub.db"))).secret_key([7; 32]);
        builder.clock(clock.clone()).open().await.unwrap()
    };
    let hub = open().await;
    hub.start().await.unwrap();
    for word in ["received", "received", "ignored"] {
        hub.context().node.counters.messages.count(word);
    }
    hub.context().node.counters.sends.count("sent");
    hub.context().node.counters.sends.count("rejected");
    let in_memory = hub.admin().stats(&Actor::Operator).await.unwrap();
    assert_eq!((in_memory.totals.messages_in, in_memory.totals.messages_out), (3, 1));
    hub.shutdown().await;
    let hub = open().await;
    let stored = hub.admin().stats(&Actor::Operator).await.unwrap();
    assert_eq!(stored, in_memory);
    assert_eq!(stored.series.last().unwrap().counts, stored.totals);
    clock.advance(Duration::from_secs(3600));
    let later = hub.admin().stats(&Actor::Operator).await.unwrap();
    assert_eq!(later.totals, stored.totals);
    assert!(later.series.iter().all(|minute| minute.counts == crate::counters::Tallied::default()));
}

#[tokio::test]
async fn sessions_of_a_user_are_listed_and_revoked() {
    let fixture = Fixture::new().await;
    let (admin, admin_id) = fixture.user("admin-1").await;
    let (bob, bob_id) = fixture.user("bob").await;
    let page = PageRequest::default();
    let house_admin = fixture.hub.admin();
    let sessions = async |id| house_admin.sessions(&admin, id, &page).await.unwrap().items;
    let own = sessions(admin_id).await;
    assert!(own[0].current && !sessions(bob_id).await[0].current);
    let mut revocations = fixture.hub.revocations();
    let one = bob.user().unwrap().session_id.unwrap();
    for (id, session) in [(admin_id, one), (bob_id, own[0].id), (UserId::from_u128(1), one)] {
        let error = house_admin.end_sessions(&admin, id, Some(session)).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::NotFound);
    }
    let nobody = house_admin.end_sessions(&admin, UserId::from_u128(1), None).await.unwrap_err();
    assert_eq!(nobody.code(), ErrorCode::NotFound);
    for refused in [
        house_admin.sessions(&bob, bob_id, &page).await.map(|_| ()),
        house_admin.end_sessions(&bob, admin_id, None).await.map(|_| ()),
    ] {
        assert_eq!(refused.unwrap_err().code(), ErrorCode::Forbidden);
    }
    assert_eq!(house_admin.end_sessions(&admin, bob_id, Some(one)).await.unwrap(), 1);
    assert_eq!(revocations.recv().await.unwrap(), Revoked::Session(one));
    assert!(sessions(bob_id).await.is_empty());
    for _ in 0..3 {
        fixture.hub.accounts().login("bob", PASSWORD.into(), &ClientInfo::default()).await.unwrap();
    }
    assert_eq!(house_admin.end_sessions(&Actor::Operator, bob_id, None).await.unwrap(), 3);
    assert_eq!(revocations.recv().await.unwrap(), Revoked::User(bob_id));
    let filter = AuditFilter { action: Some("user.sessions_ended".into()), ..AuditFilter::default() };
    let log = house_admin.audit(&admin, &filter, &page).await.unwrap();
    let ended: Vec<_> = log.items.iter().map(|entry| entry.detail["sessions"].as_u64()).collect();
    assert_eq!(ended, [Some(3), Some(1)], "what was refused is nowhere");
    assert_eq!(log.items[1].detail["session"], one.to_string());
}
