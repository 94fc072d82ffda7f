//! Starts workers, and decides whether one runs plugins where its system calls cannot be filtered.

use std::{
    process::Stdio,
    sync::{Mutex, PoisonError},
};

use tokio::process::Command;

use super::{SandboxFault, WORKER_ARGUMENT, WorkerProgram, process::Worker};
use crate::time::Clock;

/// Whether the filter of system calls is a condition for running plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallFilter {
    /// No plugin runs without it.
    #[default]
    Required,
    /// Plugins run without it where it cannot be installed: on a machine of their author, or where another mechanism
    /// confines the hub.
    Optional,
}

/// The confinement of plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Confinement {
    /// No worker has started yet, or there are none.
    #[default]
    Unknown,
    /// System calls are filtered.
    Filtered,
    /// The filter cannot be installed, and plugins run without it.
    Unfiltered,
    /// The filter cannot be installed, and plugins do not run.
    Refused,
}

#[derive(Debug)]
pub(super) struct Launcher {
    program: WorkerProgram,
    filter: CallFilter,
    confinement: Mutex<Confinement>,
}

impl Launcher {
    pub(super) fn new(program: WorkerProgram, filter: CallFilter) -> Self {
        Self { program, filter, confinement: Mutex::default() }
    }

    /// Whether plugins run in this process.
    pub(super) fn runs_in_process(&self) -> bool {
        self.program == WorkerProgram::InProcessTrustedOnly
    }

    /// Fails without a program: no run needs to wait for that.
    pub(super) fn check(&self) -> Result<(), SandboxFault> {
        if self.program == WorkerProgram::None { Err(no_program()) } else { Ok(()) }
    }

    pub(super) fn confinement(&self) -> Confinement {
        *self.confinement.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a worker. One that may not run plugins is ended before it is given any.
    ///
    /// # Errors
    /// `Unfiltered` when its system calls are not filtered and have to be; `Unavailable` and `Crashed` when it does
    /// not start.
    pub(super) async fn start(&self, clock: &Clock) -> Result<Worker, SandboxFault> {
        let worker = Worker::start(self.command()?, clock).await?;
        let confinement = match (worker.is_filtered(), self.filter) {
            (true, _) => Confinement::Filtered,
            (false, CallFilter::Optional) => Confinement::Unfiltered,
            (false, CallFilter::Required) => Confinement::Refused,
        };
        self.note(confinement);
        if confinement == Confinement::Refused { Err(SandboxFault::Unfiltered) } else { Ok(worker) }
    }

    fn note(&self, now: Confinement) {
        let mut known = self.confinement.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *known, now);
        drop(known);
        match now {
            _ if before == now => {}
            Confinement::Unfiltered => {
                tracing::warn!("plugins run without a filter of system calls: this system cannot install it");
            }
            Confinement::Refused => tracing::error!("{}", SandboxFault::Unfiltered),
            Confinement::Filtered | Confinement::Unknown => {}
        }
    }

    fn command(&self) -> Result<Command, SandboxFault> {
        let path = match &self.program {
            // This file, also after an upgrade replaced it.
            WorkerProgram::SelfExe if cfg!(target_os = "linux") => "/proc/self/exe".into(),
            WorkerProgram::SelfExe => {
                std::env::current_exe().map_err(|error| SandboxFault::Unavailable(error.to_string()))?
            }
            WorkerProgram::Path(path) => path.clone(),
            WorkerProgram::None | WorkerProgram::InProcessTrustedOnly => {
                return Err(no_program());
            }
        };
        let mut command = Command::new(path);
        command
            .arg(WORKER_ARGUMENT)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // Elsewhere than on Linux the time zone file can be read.
        if cfg!(not(target_os = "linux")) {
            command.env("TZ", "UTC");
        }
        Ok(command)
    }
}

fn no_program() -> SandboxFault {
    SandboxFault::Unavailable("no worker program is configured".to_owned())
}
