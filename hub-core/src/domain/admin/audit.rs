//! Reading the audit log.

use super::Admin;
use crate::{
    access::Actor,
    error::Result,
    model::audit::AuditEntry,
    page::{Page, PageRequest},
    store::audit::AuditFilter,
};

impl AuditFilter {
    /// The name of this list for [`PageRequest::parse`]: a cursor of another filter is refused.
    pub fn list_name(&self) -> String {
        format!("audit:{self:?}")
    }
}

impl Admin<'_> {
    /// The audit log, newest first.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an administrator.
    pub async fn audit(
        &self,
        actor: &Actor,
        filter: &AuditFilter,
        page: &PageRequest,
    ) -> Result<Page<AuditEntry>> {
        actor.admin()?;
        let found = self.ctx.store.read().await?.audit().page(filter, page).await?;
        Ok(Page::from_found(&filter.list_name(), page, found, |entry| entry.id.to_string()))
    }
}
