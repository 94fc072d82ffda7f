//! Senders of recordings: the hub, or this process.

use std::{path::Path, time::Duration};

use hub_core::{
    egress::{Egress, EgressConfig},
    replay::{Carrier, Mode, Script, ThroughHub, ToUrl},
    sandbox::Sandbox,
    time::Clock,
};
use url::Url;

use crate::{
    args::ReplayArgs,
    client::{Client, is_loopback},
    commands::{plugins::run::sandbox, read_file, secret},
    exit::Failure,
    local,
    printer::Printer,
};

/// Sender of the recordings.
#[derive(Debug)]
pub enum Route {
    /// The hub sends the replays.
    Hub { to: Option<Url>, supersede: bool, timeout: Duration },
    /// This process sends.
    Here { to: Option<Url>, mode: Mode },
}

impl Route {
    pub fn of(args: &ReplayArgs, printer: &Printer) -> Result<Self, Failure> {
        let how = &args.how;
        let names_secret = args.secret.secret_file.is_some() || args.secret.secret.is_some();
        let to = how.to.clone();
        let is_here = how.as_recorded || how.resign || !how.script.is_empty() || args.from.is_some();
        if how.through_plugins && how.script.is_empty() {
            if args.from.is_some() {
                return Err(Failure::usage(
                    "--through-plugins: a hub runs its plugins only on its own traces, not on recordings",
                )
                .with_hint("name the plugins to run here with --script"));
            }
            if names_secret {
                return Err(Failure::usage("the hub signs with the channel's secret; remove the secret"));
            }
        }
        let is_here = is_here || (to.is_some() && !how.through_plugins && !how.bulk);
        if is_here && how.supersede {
            return Err(Failure::usage("--supersede: only the hub has deliveries that wait")
                .with_hint("send through the hub: with --bulk, --through-plugins, or without --to"));
        }
        if !is_here {
            if names_secret {
                return Err(Failure::usage("the hub signs with the channel's secret; remove the secret")
                    .with_hint("--resign sends from this machine, signed with your secret"));
            }
            let timeout = Duration::from_secs(args.pace.timeout);
            return Ok(Self::Hub { to, supersede: how.supersede, timeout });
        }
        let mode = if how.through_plugins {
            let scripts = how.script.iter().map(|path| script(path)).collect::<Result<Vec<_>, Failure>>()?;
            let secret = secret::given(&args.secret, printer)?;
            Mode::ThroughPlugins { sandbox: sandbox(), scripts, secret }
        } else if how.as_recorded && names_secret {
            return Err(Failure::usage("--as-recorded does not sign; use --resign with a secret"));
        } else if how.resign || names_secret {
            Mode::Resign(secret::required(&args.secret, printer)?)
        } else {
            Mode::AsRecorded
        };
        Ok(Self::Here { to, mode })
    }

    /// Whether another machine may be contacted.
    pub fn leaves_this_machine(&self) -> bool {
        match self {
            Self::Hub { .. } => true,
            Self::Here { to, .. } => !to.as_ref().is_some_and(is_loopback),
        }
    }

    /// The local plugins.
    pub const fn sandbox(&self) -> Option<&Sandbox> {
        match self {
            Self::Here { mode: Mode::ThroughPlugins { sandbox, .. }, .. } => Some(sandbox),
            _ => None,
        }
    }

    pub const fn concurrency(&self) -> usize {
        match self {
            Self::Hub { .. } => 16,
            Self::Here { .. } => 1,
        }
    }

    /// The sender.
    pub fn carrier(self, client: Option<&Client>) -> Result<Box<dyn Carrier + '_>, Failure> {
        let clock = Clock::system();
        match (self, client) {
            (Self::Hub { to, supersede, timeout }, Some(hub)) => {
                Ok(Box::new(ThroughHub { hub, to: to.map(String::from), supersede, timeout, clock }))
            }
            (Self::Hub { .. }, None) => {
                Err(Failure::usage("recordings are sent from this machine: name a URL with --to"))
            }
            (Self::Here { to, mode }, _) => {
                let egress = match &to {
                    // The user named the address, so private addresses are allowed.
                    Some(_) => Egress::new(EgressConfig::default())?.trusted(),
                    // These URLs are from the recordings, which may be from another person.
                    None => {
                        Egress::new(EgressConfig { allow: local::allowed()?, ..EgressConfig::default() })?
                    }
                };
                let target = to.map(|to| egress.check_url(to.as_str())).transpose()?;
                Ok(Box::new(ToUrl::new(egress, target, mode, clock)))
            }
        }
    }
}

fn script(path: &Path) -> Result<Script, Failure> {
    let shown = path.display().to_string();
    let name = path.file_name().map_or_else(|| shown.clone(), |name| name.to_string_lossy().into_owned());
    Ok(Script::parse(name, read_file(&shown)?)?)
}
