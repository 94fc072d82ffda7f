//! Admission of new accounts: the registration mode, the setup token, invitations.

use crate::{
    access::Role,
    accounts::Accounts,
    config::Registration,
    error::{Advice, Error, ErrorCode, Result},
    secret::{Secret, TokenHash, TokenKind, parse_token},
    store::{Tx, accounts::Purpose},
    time::Timestamp,
};

/// Credentials for registration. Everything that creates an account without a session, by password, passkey or
/// provider, calls [`Accounts::admission`] early and [`Admission::admit`] in the transaction that adds the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Admission {
    /// Nothing: registration is open.
    Open,
    /// The setup token of a hub without admin.
    Setup(TokenHash),
    Invite(TokenHash),
}

impl Accounts<'_> {
    /// Rejects early what [`Admission::admit`] would reject anyway, before the cost of a hash or a ceremony.
    ///
    /// # Errors
    /// `INVALID_TOKEN` for a malformed ticket; `FORBIDDEN` when registration is closed, or needs an invitation or the
    /// setup token and none is given.
    pub(super) async fn admission(&self, ticket: Option<Secret>) -> Result<Admission> {
        if let Some(ticket) = ticket {
            let text = ticket.expose().trim();
            if text.starts_with(TokenKind::Invite.prefix()) {
                let hash = parse_token(TokenKind::Invite, text).ok_or_else(bad_invite)?;
                if self.ctx.config.registration == Registration::Closed {
                    return Err(closed());
                }
                return Ok(Admission::Invite(hash));
            }
            return parse_token(TokenKind::Setup, text).map(Admission::Setup).ok_or_else(bad_setup_token);
        }
        match self.ctx.config.registration {
            Registration::Open => {}
            Registration::Invite => {
                return Err(Error::new(ErrorCode::Forbidden, "registering needs an invitation")
                    .with_hint("ask an administrator for one"));
            }
            Registration::Closed => return Err(closed()),
        }
        if self.ctx.config.setup_token_required && self.is_new().await? {
            return Err(setup_token_missing());
        }
        Ok(Admission::Open)
    }
}

impl Admission {
    /// Uses the ticket up, in the transaction that creates the account.
    ///
    /// # Errors
    /// `INVALID_TOKEN` when it is unknown, used or expired.
    pub(super) async fn admit(&self, tx: &mut Tx, now: Timestamp) -> Result<()> {
        match self {
            Self::Open => Ok(()),
            Self::Setup(hash) => {
                let used = tx.accounts().use_one_time(Purpose::Setup, hash, now).await?;
                used.map(|_| ()).ok_or_else(bad_setup_token)
            }
            Self::Invite(hash) => {
                let used = tx.accounts().use_one_time(Purpose::Invite, hash, now).await?;
                used.map(|_| ()).ok_or_else(bad_invite)
            }
        }
    }

    /// Checks whether an account with this role may be created: where the first admin needs the setup token, an
    /// invitation does not suffice.
    ///
    /// # Errors
    /// `FORBIDDEN` when the setup token is needed and was not given.
    pub(super) fn allows(&self, role: Role, setup_token_required: bool) -> Result<()> {
        if role == Role::Admin && setup_token_required && !matches!(self, Self::Setup(_)) {
            return Err(setup_token_missing());
        }
        Ok(())
    }
}

fn closed() -> Error {
    Error::new(ErrorCode::Forbidden, "registration is closed")
        .with_hint("ask an administrator for an account")
}

fn bad_invite() -> Error {
    Error::new(ErrorCode::InvalidToken, "the invitation is wrong, used or expired")
        .with_hint("ask for another one")
}

fn bad_setup_token() -> Error {
    Error::new(ErrorCode::InvalidToken, "the setup token is wrong, used or expired")
        .with_hint("restart the server for a new one, or create an administrator on its machine")
        .with_advice([Advice::CreateAdministrator])
}

fn setup_token_missing() -> Error {
    Error::new(
        ErrorCode::Forbidden,
        "this hub has no administrator yet: register with the setup token that the server printed at its start",
    )
}
