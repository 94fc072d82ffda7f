//! The file that a running server publishes in its data directory, so that programs on the same files have its address and apply
//! its rules instead of those of their own environment.

use std::{
    fs::{File, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    net::SocketAddr,
    path::Path,
};

use hub_core::{
    egress::{AllowRule, EgressConfig},
    private_files::{self, Locked},
};
use serde::{Deserialize, Serialize};
use url::Url;

/// The file, locked by the server for as long as it runs.
const FILE: &str = "server.json";

/// The mark of a running server. It is valid until this is dropped or the process ends.
#[derive(Debug)]
pub struct Mark {
    _locked: Locked,
}

#[derive(Debug, Serialize, Deserialize)]
struct Contents {
    egress_allow: Vec<String>,
    listens: Vec<SocketAddr>,
    /// Absent in the file of an older server.
    public_url: Option<Url>,
}

/// Publishes address and rules of this server in its data directory. `None` if another server has published its rules there,
/// as nodes with one directory and one PostgreSQL database do.
///
/// # Errors
/// If the file cannot be written.
pub fn announce(data_dir: &Path, egress: &EgressConfig, public_url: &Url) -> io::Result<Option<Mark>> {
    private_files::create_folder(data_dir)?;
    let Some(file) = private_files::lock(&data_dir.join(FILE))? else { return Ok(None) };
    let contents = Contents {
        egress_allow: egress.allow.iter().map(ToString::to_string).collect(),
        listens: egress.own_listeners.clone(),
        public_url: Some(public_url.clone()),
    };
    file.set_len(0)?;
    (&*file).write_all(&serde_json::to_vec(&contents)?)?;
    Ok(Some(Mark { _locked: file }))
}

/// The egress rules of the server that runs on this data directory; `None` if none runs, or its rules cannot be read.
pub fn egress(data_dir: &Path) -> Option<EgressConfig> {
    let contents = read(data_dir)?;
    let allow: Result<Vec<AllowRule>, _> = contents.egress_allow.iter().map(|rule| rule.parse()).collect();
    Some(EgressConfig { allow: allow.ok()?, own_listeners: contents.listens, ..EgressConfig::default() })
}

/// The address for users of the server that runs on this data directory; `None` if none runs, or it is an older one.
pub fn public_url(data_dir: &Path) -> Option<Url> {
    read(data_dir)?.public_url
}

fn read(data_dir: &Path) -> Option<Contents> {
    let mut file = File::open(data_dir.join(FILE)).ok()?;
    // A lock that can be taken belongs to a server that has ended.
    if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return None;
    }
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text)).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_of_a_server_count_while_it_runs() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = folder.path().join("new");
        assert!(egress(&data_dir).is_none());
        let rules = EgressConfig {
            allow: vec!["10.0.0.0/8".parse().unwrap(), "[::1]:81".parse().unwrap()],
            own_listeners: vec!["127.0.0.1:9800".parse().unwrap()],
            ..EgressConfig::default()
        };
        let url = Url::parse("http://localhost:1").unwrap();
        let mark = announce(&data_dir, &rules, &url).unwrap().unwrap();
        assert_eq!(public_url(&data_dir), Some(url.clone()));
        let read = egress(&data_dir).unwrap();
        assert_eq!((read.allow, read.own_listeners), (rules.allow.clone(), rules.own_listeners.clone()));
        assert!(announce(&data_dir, &rules, &url).unwrap().is_none(), "another server is there");
        drop(mark);
        assert!(egress(&data_dir).is_none() && public_url(&data_dir).is_none());
        let shorter = EgressConfig::default();
        let _mark = announce(&data_dir, &shorter, &url).unwrap().unwrap();
        assert!(egress(&data_dir).unwrap().allow.is_empty());
    }
}
