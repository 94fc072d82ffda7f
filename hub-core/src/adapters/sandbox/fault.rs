//! Failures of the sandbox: a run could not be made, or was lost. Neither the message nor the plugin is the cause.

use crate::error::{Error, ErrorCode};

/// Failure of the sandbox instead of an outcome. The message is not the cause, and every one of them can be retried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SandboxFault {
    /// The queue of runs is full.
    #[error("too many plugin runs are waiting")]
    Busy,
    /// The worker was killed from outside, or could not start. A script that crashes its worker is an error of that
    /// script: [`ErrorKind::Crash`](super::ErrorKind::Crash).
    #[error("the plugin's process ended: {0}")]
    Crashed(String),
    /// The filter of system calls is required and cannot be installed.
    #[error(
        "plugins do not run: this system cannot filter their system calls; \
         sandbox_filter = \"optional\" runs them without the filter"
    )]
    Unfiltered,
    /// No worker can be started.
    #[error("plugins cannot run: {0}")]
    Unavailable(String),
    /// The hub shuts down.
    #[error("plugins do not run any more: the hub shuts down")]
    Closed,
}

impl SandboxFault {
    /// The name in traces and metrics.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Busy => "sandbox_busy",
            Self::Crashed(_) => "sandbox_crash",
            Self::Unfiltered => "sandbox_unfiltered",
            Self::Unavailable(_) => "sandbox_unavailable",
            Self::Closed => "sandbox_closed",
        }
    }
}

impl From<SandboxFault> for Error {
    /// `RATE_LIMITED` when the queue is full, `UNAVAILABLE` otherwise.
    fn from(fault: SandboxFault) -> Self {
        let code = match fault {
            SandboxFault::Busy => ErrorCode::RateLimited,
            _ => ErrorCode::Unavailable,
        };
        Self::new(code, fault.to_string()).with_source(fault)
    }
}
