//! One confirm: ask the network until something changed, and write down what.

use std::time::Duration;

use super::{MAX_CODES, Notes};
use crate::{
    access::Actor,
    bots::Bots,
    error::Result,
    id::BindId,
    model::{
        bot::{BindStatus, StoredBind},
        cause::Cause,
    },
    network::{LoginProgress, LoginState, LoginStep, NetworkError},
    store::binds::BindChange,
};

/// Pause between two questions when nothing changed.
const PAUSE: Duration = Duration::from_secs(1);
/// The network gets at least this long to answer, however little a caller wants to wait.
const SHORTEST: Duration = Duration::from_secs(1);

impl Bots<'_> {
    /// Steps a login until its status or its code changed, a number was judged, or the time ran out.
    pub(super) async fn wait_for_change(
        &self,
        actor: &Actor,
        id: BindId,
        mut code: Option<&str>,
        wait: Duration,
    ) -> Result<StoredBind> {
        let deadline = self.ctx.clock.instant() + wait;
        let mut first = None;
        loop {
            let bind = self.find_bind(actor, id).await?;
            let seen = (bind.status, bind.codes_shown);
            if bind.status.is_final() || *first.get_or_insert(seen) != seen {
                return Ok(bind);
            }
            if self.ctx.store.now() >= bind.expires_at {
                self.end(&bind, BindStatus::Expired, &Cause::BindExpired.to_string()).await?;
                continue;
            }
            let notes = Notes::open(&self.ctx.sealer, &bind)?;
            let left = deadline.since(self.ctx.clock.instant());
            let network = self.ctx.network(&bind.network)?;
            let progress =
                network.login_step(&LoginState(notes.state.clone()), code, left.max(SHORTEST)).await;
            let still_waiting =
                matches!(&progress, Err(_) | Ok(LoginProgress { step: LoginStep::Waiting, .. }));
            let judged = code.is_some() && !still_waiting;
            self.advance(actor, &bind, notes, progress).await?;
            if !still_waiting {
                // Judged, or not asked for: it must not be sent again.
                code = None;
            }
            if judged || self.ctx.clock.instant() >= deadline {
                return self.find_bind(actor, id).await;
            }
            if self.find_bind(actor, id).await?.rev == bind.rev {
                self.ctx.clock.sleep(PAUSE.min(deadline.since(self.ctx.clock.instant()))).await;
            }
        }
    }

    async fn advance(
        &self,
        actor: &Actor,
        bind: &StoredBind,
        notes: Notes,
        progress: Result<LoginProgress, NetworkError>,
    ) -> Result<()> {
        let LoginProgress { step, state } = match progress {
            Ok(progress) => progress,
            Err(NetworkError::Refused { message, .. } | NetworkError::LoginExpired(message)) => {
                return self.end(bind, BindStatus::Refused, &message).await;
            }
            // A network that cannot be reached says nothing about the login.
            Err(error @ (NetworkError::Unreachable(_) | NetworkError::Throttled { .. })) => {
                tracing::debug!(bind = %bind.id, %error, "no response about a login");
                return Ok(());
            }
        };
        let (status, reason) = match step {
            LoginStep::Waiting => (bind.status, notes.reason.clone()),
            LoginStep::Scanned => (BindStatus::Scanned, None),
            LoginStep::NeedCode { wrong } => {
                (BindStatus::NeedCode, wrong.then(|| Cause::WrongNumber.to_string()))
            }
            LoginStep::CodeBlocked | LoginStep::Expired => return self.refresh(bind).await,
            LoginStep::AlreadyBound => return self.resume(actor, bind, notes.known).await,
            LoginStep::Confirmed(credentials) => return self.settle(actor, bind, credentials).await,
            LoginStep::Refused(why) => return self.end(bind, BindStatus::Refused, &why).await,
        };
        if (status, &reason, &state.0) == (bind.status, &notes.reason, &notes.state) {
            return Ok(());
        }
        let notes = Notes { state: state.0, reason, ..notes };
        self.change(bind, status, &notes, bind.codes_shown).await
    }

    /// Replaces a code that ran out, twice at most.
    async fn refresh(&self, bind: &StoredBind) -> Result<()> {
        if bind.codes_shown >= MAX_CODES {
            return self.end(bind, BindStatus::Expired, &Cause::CodesExpired.to_string()).await;
        }
        let (prompt, known) = self.new_code(bind.owner_id, &bind.network, bind.for_bot).await?;
        self.change(bind, BindStatus::Waiting, &Notes::new(&prompt, known), bind.codes_shown + 1).await
    }

    pub(super) async fn end(&self, bind: &StoredBind, status: BindStatus, reason: &str) -> Result<()> {
        self.change(bind, status, &Notes::ended(Some(reason.to_owned())), bind.codes_shown).await
    }

    /// Writes a change unless another confirm was faster; then the caller reads that one.
    async fn change(
        &self,
        bind: &StoredBind,
        status: BindStatus,
        notes: &Notes,
        codes_shown: u32,
    ) -> Result<()> {
        let (id, rev) = (bind.id, bind.rev);
        let private = notes.seal(&self.ctx.sealer, id);
        let change = BindChange { status, private, codes_shown, bot_id: None };
        self.ctx
            .store
            .write(move |tx| Box::pin(async move { tx.binds().advance(id, rev, &change).await.map(drop) }))
            .await
    }
}
