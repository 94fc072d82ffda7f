//! Which way recordings go: through the hub, or from here.

use std::{path::Path, time::Duration};

use hub_core::{
    egress::{Egress, EgressConfig},
    replay::{Carrier, Mode, Script, ThroughHub, ToUrl},
    sandbox::Sandbox,
    time::Clock,
};
use url::{Host, Url};

use crate::{
    args::ReplayArgs,
    commands::{debug, read_file, secret},
    exit::Failure,
    local,
    printer::Printer,
    reach::Reach,
};

/// Which way.
#[derive(Debug)]
pub enum Way {
    /// The hub makes the replays.
    Hub { to: Option<Url>, patience: Duration },
    /// This process sends.
    Here { to: Option<Url>, mode: Mode },
}

impl Way {
    /// That of the arguments.
    ///
    /// # Errors
    /// When they contradict each other, or a file cannot be read.
    pub fn of(args: &ReplayArgs, printer: &Printer) -> Result<Self, Failure> {
        let how = &args.how;
        let names_secret = args.secret.secret_file.is_some() || args.secret.secret.is_some();
        let to = how.to.clone();
        let is_here = how.as_recorded || how.resign || !how.script.is_empty() || args.from.is_some();
        if how.through_plugins && how.script.is_empty() {
            if args.from.is_some() {
                return Err(Failure::usage(
                    "--through-plugins: a hub runs its plugins on its own traces, not on recordings",
                )
                .with_hint("name the plugins to run here with --script"));
            }
            if names_secret {
                return Err(Failure::usage(
                    "the hub signs with the channel's own secret; leave the secret out",
                ));
            }
        }
        let is_here = is_here || (to.is_some() && !how.through_plugins);
        if !is_here {
            if names_secret {
                return Err(Failure::usage(
                    "the hub signs with the channel's own secret; leave the secret out",
                )
                .with_hint("--resign sends from here, signed with yours"));
            }
            return Ok(Self::Hub { to, patience: Duration::from_secs(args.pace.timeout) });
        }
        let mode = if how.through_plugins {
            let scripts = how.script.iter().map(|path| script(path)).collect::<Result<Vec<_>, Failure>>()?;
            let secret = secret::given(&args.secret, printer)?;
            Mode::ThroughPlugins { sandbox: debug::sandbox(), scripts, secret }
        } else if how.as_recorded && names_secret {
            return Err(Failure::usage("--as-recorded signs nothing; with --resign the secret is used"));
        } else if how.resign || names_secret {
            Mode::Resign(secret::required(&args.secret, printer)?)
        } else {
            Mode::AsRecorded
        };
        Ok(Self::Here { to, mode })
    }

    /// Whether somebody beyond this machine may be reached.
    pub fn leaves_this_machine(&self) -> bool {
        match self {
            Self::Hub { .. } => true,
            Self::Here { to, .. } => !to.as_ref().is_some_and(is_loopback),
        }
    }

    /// What runs plugins here.
    pub const fn sandbox(&self) -> Option<&Sandbox> {
        match self {
            Self::Here { mode: Mode::ThroughPlugins { sandbox, .. }, .. } => Some(sandbox),
            _ => None,
        }
    }

    /// So many at a time, when nobody said it.
    pub const fn concurrency(&self) -> usize {
        match self {
            Self::Hub { .. } => 16,
            Self::Here { .. } => 1,
        }
    }

    /// What sends them.
    ///
    /// # Errors
    /// When the URL is not acceptable.
    pub fn carrier(self, reach: Option<&Reach>) -> Result<Box<dyn Carrier + '_>, Failure> {
        let clock = Clock::system();
        match (self, reach) {
            (Self::Hub { to, patience }, Some(hub)) => {
                Ok(Box::new(ThroughHub { hub, to: to.map(String::from), patience, clock }))
            }
            (Self::Hub { .. }, None) => {
                Err(Failure::usage("recordings are sent from here: name a URL with --to"))
            }
            (Self::Here { to, mode }, _) => {
                let egress = match &to {
                    // Whoever runs this named the address: the rule against private ones is not for it.
                    Some(_) => Egress::new(EgressConfig::default())?.trusted()?,
                    // These stand in the recordings, which somebody else may have made.
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

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}
