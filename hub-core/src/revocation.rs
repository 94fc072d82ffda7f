//! Credentials that ended, told to everything that still serves them, on every node, within a second
//! (reliability B5, B11, K6; design rule D19).
//!
//! Every request authenticates anew, so an ended credential is worth nothing on the next one. What lives longer
//! than a request, a socket or a parked poll, listens: [`Hub::revocations`](crate::Hub::revocations) says
//! what may have ended, [`Revoked::concerns`] whether that touches an actor. Whoever is concerned authenticates
//! again with the credential it holds, and closes when that is refused. A listener that lagged behind does the
//! same without looking. The same revocation may be told twice.
//!
//! To end something: write [`Context::revocation`] with `tx.revocations().add(…)` in the very transaction that
//! ends it, and call [`Context::tell_revoked`] after its commit. This node then hears of it at once, others by a
//! hint; a hint that got lost, or a change by the command line beside a running server, is found by looking
//! twice a second.

use std::{collections::HashMap, fmt, str::FromStr, time::Duration};

use crate::{
    access::Actor,
    context::{Context, Hint},
    error::{Error, Result},
    id::{AppId, BotId, ChannelId, InstallationId, KeyId, RevocationId, SessionId, UserId},
    tasks::Tasks,
    time::Timestamp,
};

/// Time between two looks that nobody asked for.
const LOOK: Duration = Duration::from_millis(500);
/// How far back a look goes: a transaction may commit a while after it took its time.
const WINDOW: Duration = Duration::from_secs(30);
/// How long rows are kept.
pub(crate) const KEPT: Duration = Duration::from_secs(10 * 60);

/// What ended, or changed so that it has to be looked at again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Revoked {
    /// A session.
    Session(SessionId),
    /// A user's API key.
    Key(KeyId),
    /// Something about a user: disabled, demoted, deleted, or sessions of theirs.
    User(UserId),
    /// A channel's key, or the channel itself.
    Channel(ChannelId),
    /// A bot with all of its channels and apps.
    Bot(BotId),
    /// The token of an app on a bot, or what it may do.
    Installation(InstallationId),
    /// An app with all of its installations.
    App(AppId),
}

impl Revoked {
    /// Whether an actor's credential may have ended by this.
    pub fn concerns(self, actor: &Actor) -> bool {
        match (self, actor) {
            (Self::Session(id), Actor::User(user)) => user.session_id == Some(id),
            (Self::Key(id), Actor::User(user)) => user.key_id == Some(id),
            (Self::User(id), Actor::User(user)) => user.user_id == id,
            (Self::User(id), Actor::Channel(channel)) => channel.owner_id == id,
            (Self::Channel(id), Actor::Channel(channel)) => channel.channel_id == id,
            (Self::Bot(id), Actor::Channel(channel)) => channel.bot_id == id,
            (Self::User(id), Actor::App(app)) => app.owner_id == id,
            (Self::Bot(id), Actor::App(app)) => app.bot_id == id,
            (Self::Installation(id), Actor::App(app)) => app.installation_id == id,
            (Self::App(id), Actor::App(app)) => app.app_id == id,
            (_, Actor::User(_) | Actor::Channel(_) | Actor::App(_) | Actor::Operator) => false,
        }
    }
}

/// The id of what ended; its prefix says what it is.
impl fmt::Display for Revoked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(id) => id.fmt(f),
            Self::Key(id) => id.fmt(f),
            Self::User(id) => id.fmt(f),
            Self::Channel(id) => id.fmt(f),
            Self::Bot(id) => id.fmt(f),
            Self::Installation(id) => id.fmt(f),
            Self::App(id) => id.fmt(f),
        }
    }
}

impl FromStr for Revoked {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let session = text.parse().map(Self::Session);
        session
            .or_else(|_| text.parse().map(Self::Key))
            .or_else(|_| text.parse().map(Self::User))
            .or_else(|_| text.parse().map(Self::Channel))
            .or_else(|_| text.parse().map(Self::Bot))
            .or_else(|_| text.parse().map(Self::Installation))
            .or_else(|_| text.parse().map(Self::App))
    }
}

/// A revocation as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revocation {
    /// Its id.
    pub id: RevocationId,
    /// What ended.
    pub revoked: Revoked,
    /// When.
    pub at: Timestamp,
}

/// Starts telling what other nodes and processes end.
pub(crate) fn start(ctx: &Context, tasks: &Tasks) {
    let (ctx, own) = (ctx.clone(), tasks.clone());
    tasks.supervise("revocations", ctx.clock.clone(), move || watch(ctx.clone(), own.clone()));
}

async fn watch(ctx: Context, tasks: Tasks) {
    let mut told = Told { looked_at: ctx.store.now(), rows: HashMap::new() };
    let mut hints = ctx.wake.listen();
    loop {
        if let Err(error) = tell_new(&ctx, &mut told).await {
            tracing::debug!(%error, "revocations cannot be read; the next look finds them");
        }
        let hinted = async {
            // A listener that lagged may have missed one; one that is closed is never asked again.
            while hints.recv().await.is_ok_and(|heard| heard.hint != Hint::Revoked) {}
        };
        tokio::select! {
            () = ctx.clock.sleep(LOOK) => {}
            () = hinted => {}
            () = tasks.stop_token().cancelled() => return,
        }
    }
}

/// What was told already.
struct Told {
    /// When the store was last read: whatever an outage kept from us is newer than that.
    looked_at: Timestamp,
    rows: HashMap<RevocationId, Timestamp>,
}

/// Tells what is in the store and was not told yet.
async fn tell_new(ctx: &Context, told: &mut Told) -> Result<()> {
    let now = ctx.store.now();
    // The clock may have been set back since.
    let since = told.looked_at.min(now) - WINDOW;
    told.rows.retain(|_, at| *at > since);
    for (id, subject, at) in ctx.store.read().await?.revocations().since(since).await? {
        // What a newer version revokes is nothing that this one serves.
        if told.rows.insert(id, at).is_none()
            && let Ok(revoked) = subject.parse()
        {
            ctx.events.revoke(revoked);
        }
    }
    told.looked_at = now;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Hub,
        access::{AppActor, ChannelActor, Role, UserActor},
        apps::AppScopes,
        id::Ids,
        random::Random,
        secret::KeyMark,
        store::StoreConfig,
        time::{Clock, ManualClock},
    };

    #[test]
    fn what_ended_is_known_by_its_id_and_concerns_its_holders() {
        let ids = Ids::new(Clock::system(), Random::seeded(1));
        let (session, key, user, channel, bot) = (ids.next(), ids.next(), ids.next(), ids.next(), ids.next());
        let (installation, app) = (ids.next(), ids.next());
        let all = [
            Revoked::Session(session),
            Revoked::Key(key),
            Revoked::User(user),
            Revoked::Channel(channel),
            Revoked::Bot(bot),
            Revoked::Installation(installation),
            Revoked::App(app),
        ];
        for revoked in all {
            assert_eq!(revoked.to_string().parse::<Revoked>().unwrap(), revoked);
        }
        assert!("plg_01K9ZC3V5T8QK4X7M2N6P0RSWA".parse::<Revoked>().is_err());
        let embedded = UserActor::embedded(user, Role::Member);
        let in_session = Actor::User(UserActor { session_id: Some(session), ..embedded });
        let by_key = Actor::User(UserActor { key_id: Some(key), ..embedded });
        let client = Actor::Channel(ChannelActor {
            channel_id: channel,
            bot_id: bot,
            owner_id: user,
            key: KeyMark::default(),
        });
        let on_bot = Actor::App(AppActor {
            installation_id: installation,
            app_id: app,
            bot_id: bot,
            owner_id: user,
            is_own: false,
            scopes: AppScopes::default(),
            token: KeyMark::default(),
        });
        for (actor, concerned) in [
            (Actor::User(embedded), [false, false, true, false, false, false, false]),
            (in_session, [true, false, true, false, false, false, false]),
            (by_key, [false, true, true, false, false, false, false]),
            (client, [false, false, true, true, true, false, false]),
            (on_bot, [false, false, true, false, true, true, true]),
            (Actor::Operator, [false; 7]),
        ] {
            assert_eq!(all.map(|revoked| revoked.concerns(&actor)), concerned, "{actor:?}");
        }
    }

    /// A row that another process wrote is told, once, without any hint; so is one that is hinted at.
    #[tokio::test]
    async fn what_another_process_ends_is_told_by_looking() {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::new(Timestamp::from_millis(1_790_000_000_000));
        let builder =
            Hub::builder().store(StoreConfig::Sqlite(folder.path().join("hub.db"))).secret_key([7; 32]);
        let hub = builder.clock(clock.clone()).random(Random::seeded(1)).open().await.unwrap();
        hub.start().await.unwrap();
        let mut told = hub.revocations();
        let ctx = hub.context().clone();
        let rows: Vec<Revocation> = (0..2).map(|_| ctx.revocation(Revoked::User(ctx.ids.next()))).collect();
        for row in &rows {
            let row = *row;
            let add = ctx.store.write(move |tx| Box::pin(async move { tx.revocations().add(&row).await }));
            add.await.unwrap();
        }
        while told.len() < rows.len() {
            clock.advance(LOOK);
            tokio::task::yield_now().await;
        }
        assert_eq!(told.recv().await.unwrap(), rows[0].revoked);
        assert_eq!(told.recv().await.unwrap(), rows[1].revoked);
        let hinted = ctx.revocation(Revoked::User(ctx.ids.next()));
        let add = ctx.store.write(move |tx| Box::pin(async move { tx.revocations().add(&hinted).await }));
        add.await.unwrap();
        ctx.wake.hint(Hint::Revoked);
        assert_eq!(told.recv().await.unwrap(), hinted.revoked);
        assert!(told.try_recv().is_err(), "each is told once");
        hub.shutdown().await;
    }
}
