//! Revoked credentials, reported to everything that still serves them, on every node, within a second.
//!
//! Every request is authenticated, so a revoked credential is rejected on the next one. Whatever lives longer than a
//! request, a socket or a long poll, listens: [`Hub::revocations`](crate::Hub::revocations) reports what may have
//! been revoked, [`Revoked::concerns`] whether that concerns an actor. An affected listener authenticates again with
//! its credential, and closes if that is rejected. A listener that lagged does the same without checking. The same
//! revocation may be reported twice.
//!
//! To revoke something: write [`Context::revocation`] with `tx.revocations().add(…)` in the transaction that revokes
//! it, and call [`Context::notify_revoked`] after its commit. This node is then notified at once, others by a hint; a
//! lost hint, or a change by the command line while a server runs, is found by polling twice a second.

use std::{collections::HashMap, time::Duration};

use crate::{context::Context, error::Result, id::RevocationId, tasks::Tasks, time::Timestamp, wake::Hint};

pub use crate::model::revocation::{Revocation, Revoked};

/// Poll interval without a signal.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Time span before the last read that is read again: a transaction may commit a while after its timestamp.
const WINDOW: Duration = Duration::from_secs(30);
pub(crate) const RETENTION: Duration = Duration::from_secs(10 * 60);

/// Starts to report revocations of other nodes and processes.
pub(crate) fn start(ctx: &Context, tasks: &Tasks) {
    let (ctx, own) = (ctx.clone(), tasks.clone());
    tasks.supervise("revocations", ctx.clock.clone(), move || watch(ctx.clone(), own.clone()));
}

async fn watch(ctx: Context, tasks: Tasks) {
    let mut reported = Reported { looked_at: ctx.store.now(), rows: HashMap::new() };
    let mut hints = ctx.node.wake.listen();
    loop {
        if let Err(error) = notify_new(&ctx, &mut reported).await {
            tracing::debug!(%error, "revocations cannot be read; the next look finds them");
        }
        let hinted = async {
            // A listener that lagged may have missed one; a closed one is not polled again.
            while hints.recv().await.is_ok_and(|received| received.hint != Hint::Revoked) {}
        };
        tokio::select! {
            () = ctx.clock.sleep(POLL_INTERVAL) => {}
            () = hinted => {}
            () = tasks.stop_token().cancelled() => return,
        }
    }
}

/// Revocations that were reported already.
struct Reported {
    /// Time of the last read of the store: changes during an outage are newer.
    looked_at: Timestamp,
    rows: HashMap<RevocationId, Timestamp>,
}

/// Reports the stored revocations that were not reported yet.
async fn notify_new(ctx: &Context, reported: &mut Reported) -> Result<()> {
    let now = ctx.store.now();
    // The clock may have been set back since.
    let since = reported.looked_at.min(now) - WINDOW;
    reported.rows.retain(|_, at| *at > since);
    for (id, subject, at) in ctx.store.read().await?.revocations().since(since).await? {
        // Subjects that cannot be parsed come from a newer version, and this one does not serve them.
        if reported.rows.insert(id, at).is_none()
            && let Ok(revoked) = subject.parse()
        {
            ctx.node.events.revoke(revoked);
        }
    }
    reported.looked_at = now;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Hub,
        access::{Actor, AppActor, AppScopes, ChannelActor, Role, UserActor},
        id::Ids,
        random::Random,
        secret::KeyMark,
        store::StoreConfig,
        time::{Clock, ManualClock},
    };

    #[test]
    fn a_revocation_concerns_the_holders_of_its_credential() {
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
            ilink: None,
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

    /// A row of another process is reported once, without a hint; so is one with a hint.
    #[tokio::test]
    async fn revocations_of_another_process_are_found_by_polling() {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::new(Timestamp::from_millis(1_790_000_000_000));
        let builder =
            Hub::builder().store(StoreConfig::Sqlite(folder.path().join("hub.db"))).secret_key([7; 32]);
        let hub = builder.clock(clock.clone()).random(Random::seeded(1)).open().await.unwrap();
        hub.start().await.unwrap();
        let mut reported = hub.revocations();
        let ctx = hub.context().clone();
        let rows: Vec<Revocation> = (0..2).map(|_| ctx.revocation(Revoked::User(ctx.ids.next()))).collect();
        for row in &rows {
            let row = *row;
            let add = ctx.store.write(move |tx| Box::pin(async move { tx.revocations().add(&row).await }));
            add.await.unwrap();
        }
        while reported.len() < rows.len() {
            clock.advance(POLL_INTERVAL);
            tokio::task::yield_now().await;
        }
        assert_eq!(reported.recv().await.unwrap(), rows[0].revoked);
        assert_eq!(reported.recv().await.unwrap(), rows[1].revoked);
        let hinted = ctx.revocation(Revoked::User(ctx.ids.next()));
        let add = ctx.store.write(move |tx| Box::pin(async move { tx.revocations().add(&hinted).await }));
        add.await.unwrap();
        ctx.node.wake.hint(Hint::Revoked);
        assert_eq!(reported.recv().await.unwrap(), hinted.revoked);
        assert!(reported.try_recv().is_err(), "each is reported once");
        hub.shutdown().await;
    }
}
