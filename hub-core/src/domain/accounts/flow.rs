//! Sign-in ceremonies: started by a browser and ended once by the same browser, within minutes.

use std::time::Duration;

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    accounts::Accounts,
    error::{Error, ErrorCode, Result},
    secret::{Secret, TokenHash, TokenKind, new_token, parse_token},
    store::sign_in_flows::{FlowPurpose, FlowRow},
};

/// Maximum number of open ceremonies; a further one ends the one that expires first.
const MAX_CEREMONIES: u32 = 10_000;
/// Maximum number of open ceremonies of one browser; a further one ends the oldest.
const MAX_PER_BROWSER: u32 = 5;

/// The browser of a ceremony, identified by a cookie that only it has.
#[derive(Debug, Clone)]
pub struct Browser {
    /// Value of the cookie, to be set at every start of a ceremony.
    pub cookie: Secret,
    hash: TokenHash,
}

impl Browser {
    fn parse(cookie: &str) -> Option<Self> {
        let hash = parse_token(TokenKind::Browser, cookie)?;
        Some(Self { cookie: cookie.into(), hash })
    }
}

impl Accounts<'_> {
    /// Returns the browser of a cookie, or a new one if the cookie was not issued by the hub.
    pub fn browser(&self, cookie: Option<&str>) -> Browser {
        cookie.and_then(Browser::parse).unwrap_or_else(|| {
            let cookie = new_token(TokenKind::Browser, &self.ctx.random);
            let hash = TokenHash::of(cookie.expose());
            Browser { cookie, hash }
        })
    }

    /// Stores the state of a new ceremony and returns its id.
    pub(super) async fn begin_flow<S: Serialize>(
        self,
        purpose: FlowPurpose,
        browser: &Browser,
        lifetime: Duration,
        state: &S,
    ) -> Result<Secret> {
        let id = new_token(TokenKind::Flow, &self.ctx.random);
        let (hash, browser, now) = (TokenHash::of(id.expose()), browser.hash.clone(), self.ctx.store.now());
        let state = Secret::new(serde_json::to_string(state).map_err(Error::internal)?);
        let state = self.ctx.sealer.seal(&place(&hash), &state);
        let noted = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                let row = FlowRow {
                    id: &hash,
                    purpose,
                    browser: &browser,
                    state: &state,
                    created_at: now,
                    expires_at: now + lifetime,
                };
                tx.sign_in_flows().trim(&browser, MAX_PER_BROWSER - 1).await?;
                tx.sign_in_flows().trim_all(now, MAX_CEREMONIES - 1).await?;
                tx.sign_in_flows().insert(&row).await
            })
        });
        noted.await?;
        Ok(id)
    }

    /// Ends a ceremony and returns its state. Regardless of the outcome it cannot be used again.
    ///
    /// # Errors
    /// `INVALID_TOKEN` when it is unknown, used, expired, for another purpose or another browser's.
    pub(super) async fn end_flow<S: DeserializeOwned>(
        self,
        purpose: FlowPurpose,
        id: &str,
        cookie: Option<&str>,
    ) -> Result<S> {
        let hash = parse_token(TokenKind::Flow, id).ok_or_else(ended)?;
        let browser = cookie.and_then(Browser::parse).ok_or_else(ended)?;
        let (key, now) = (hash.clone(), self.ctx.store.now());
        let taken = self.ctx.store.write(move |tx| {
            Box::pin(async move { tx.sign_in_flows().take(&key, purpose, &browser.hash, now).await })
        });
        let state = self.ctx.sealer.open(&place(&hash), &taken.await?.ok_or_else(ended)?)?;
        serde_json::from_str(state.expose()).map_err(Error::internal)
    }
}

fn place(id: &TokenHash) -> String {
    format!("sign_in_flows.state:{}", id.as_str())
}

fn ended() -> Error {
    Error::new(
        ErrorCode::InvalidToken,
        "this sign-in is unknown, already used or expired, or was started in another browser",
    )
    .with_hint("begin again")
}
