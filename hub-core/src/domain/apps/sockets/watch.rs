//! Keeps the sockets of apps on this node up to date: looks for events when commits signal some, polls all sockets
//! once a second and after revocations, and announces the open sockets to other nodes.

use std::{collections::HashMap, time::Duration};

use tokio::sync::broadcast::{
    Receiver,
    error::{RecvError, TryRecvError},
};

use crate::{
    context::Context,
    error::Result,
    model::app::SocketScope,
    store::app_sockets::PulseRow,
    tasks::Tasks,
    wake::{Hint, ReceivedHint},
};

/// Time between two polls of all sockets.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Pause between two rounds, so that hints are collected and handled together.
const COLLECT: Duration = Duration::from_millis(20);
/// Time between two announcements of open sockets to other nodes.
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(10);
/// Time after which an announcement expires.
pub(super) const ANNOUNCEMENT_LIFETIME: Duration = Duration::from_secs(30);
/// Apps of one query.
const MAX_PER_QUERY: usize = 500;

pub(crate) fn start(ctx: &Context, tasks: &Tasks) {
    let (ctx, own) = (ctx.clone(), tasks.clone());
    tasks.supervise("sockets of apps", ctx.clock.clone(), move || watch(ctx.clone(), own.clone()));
}

#[derive(Debug, Clone, Copy, Default)]
struct Wanted {
    events: bool,
    refresh: bool,
}

impl Wanted {
    fn receive(&mut self, hint: &ReceivedHint) {
        match hint.hint {
            Hint::AppEvents => self.events = true,
            Hint::Bot(_) | Hint::Revoked => self.refresh = true,
            _ => {}
        }
    }

    /// Receives all hints that are queued.
    fn receive_all(&mut self, hints: &mut Receiver<ReceivedHint>) {
        loop {
            match hints.try_recv() {
                Ok(hint) => self.receive(&hint),
                Err(TryRecvError::Lagged(_)) => self.refresh = true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }
}

async fn watch(ctx: Context, tasks: Tasks) {
    if !ctx.store.is_shared() {
        // Sockets that are stored as open belonged to a process that has ended.
        let close = ctx.store.write(|tx| Box::pin(async move { tx.app_sockets().close_all().await }));
        report("sockets of a dead process could not be forgotten", close.await);
    }
    let (sockets, mut hints) = (ctx.node.app_sockets.clone(), ctx.node.wake.listen());
    let (mut poll_at, mut announce_at) = (ctx.clock.instant(), ctx.clock.instant());
    loop {
        let mut wanted = Wanted::default();
        tokio::select! {
            biased;
            () = tasks.stop_token().cancelled() => return,
            hint = hints.recv() => match hint {
                Ok(hint) => wanted.receive(&hint),
                Err(RecvError::Lagged(_)) => wanted.refresh = true,
                Err(RecvError::Closed) => return,
            },
            () = sockets.work() => {}
            () = ctx.clock.sleep_until(poll_at), if !sockets.is_idle() => {}
        }
        wanted.receive_all(&mut hints);
        if sockets.is_idle() {
            continue;
        }
        let now = ctx.clock.instant();
        if now >= poll_at || wanted.refresh {
            poll_at = now + POLL_INTERVAL;
            report("apps with sockets could not be looked at", refresh_all(&ctx).await);
        } else if wanted.events {
            report("events of apps could not be looked for", notify_of_events(&ctx).await);
        }
        if now >= announce_at {
            announce_at = now + ANNOUNCE_INTERVAL;
            report("open sockets could not be announced", announce(&ctx).await);
        }
        tokio::select! {
            () = ctx.clock.sleep(COLLECT) => {}
            () = tasks.stop_token().cancelled() => return,
        }
    }
}

fn report(what: &'static str, done: Result<()>) {
    if let Err(error) = done {
        tracing::debug!(%error, "{what}");
    }
}

/// Polls one installation or app with a socket.
pub(super) async fn refresh(ctx: &Context, scope: SocketScope) -> Result<()> {
    let mut read = ctx.store.read().await?;
    let rows = match scope {
        SocketScope::Installation(id) => read.app_sockets().installations(&[id]).await?,
        SocketScope::App(id) => read.app_sockets().apps(&[id]).await?,
    };
    ctx.node.app_sockets.refresh(scope, rows.first(), ctx.store.now());
    Ok(())
}

async fn refresh_all(ctx: &Context) -> Result<()> {
    let (installations, apps) = ctx.node.app_sockets.scopes();
    let by_id = |rows: Vec<PulseRow>| -> HashMap<String, PulseRow> {
        rows.into_iter().map(|row| (row.id.clone(), row)).collect()
    };
    for ids in installations.chunks(MAX_PER_QUERY) {
        let rows = by_id(ctx.store.read().await?.app_sockets().installations(ids).await?);
        let now = ctx.store.now();
        for id in ids {
            ctx.node.app_sockets.refresh(SocketScope::Installation(*id), rows.get(&id.to_string()), now);
        }
    }
    for ids in apps.chunks(MAX_PER_QUERY) {
        let rows = by_id(ctx.store.read().await?.app_sockets().apps(ids).await?);
        let now = ctx.store.now();
        for id in ids {
            ctx.node.app_sockets.refresh(SocketScope::App(*id), rows.get(&id.to_string()), now);
        }
    }
    Ok(())
}

async fn notify_of_events(ctx: &Context) -> Result<()> {
    let (installations, apps) = ctx.node.app_sockets.scopes();
    for id in ctx.store.read().await?.app_sockets().due(&installations, &apps).await? {
        let scope = id.parse().map(SocketScope::Installation).or_else(|_| id.parse().map(SocketScope::App));
        if let Ok(scope) = scope {
            ctx.node.app_sockets.notify(scope);
        }
    }
    Ok(())
}

async fn announce(ctx: &Context) -> Result<()> {
    let (open, now) = (ctx.node.app_sockets.sockets(), ctx.store.now());
    let write = ctx.store.write(move |tx| {
        Box::pin(async move { tx.app_sockets().announce(&open, now, now + ANNOUNCEMENT_LIFETIME).await })
    });
    write.await
}
