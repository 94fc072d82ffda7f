//! Metadata blocks of plugins.

use std::collections::HashSet;

use hub_core::plugins::{
    Manifest, Permissions,
    manifest::{MAX_SOURCE, MAX_TIMEOUT_MS},
    request::Reach,
};

/// A source: its errors have line numbers of the source, and what is accepted keeps the rules of every key,
/// means the same when it is read again, and reaches no host that it does not name.
pub fn manifest(data: &[u8]) {
    let source = String::from_utf8_lossy(data);
    let lines = u32::try_from(source.split('\n').count()).expect("short inputs");
    let manifest = match Manifest::inspect(&source) {
        Ok(manifest) => manifest,
        Err(flaws) => {
            assert!(!flaws.is_empty());
            for flaw in &flaws {
                assert!((1..=lines).contains(&flaw.line), "line {} of {lines}", flaw.line);
                assert!(!flaw.message.is_empty() && !flaw.message.chars().any(char::is_control), "{flaw:?}");
            }
            assert!(Manifest::parse(&source).is_err());
            return;
        }
    };
    let readable = (1..=MAX_SOURCE).contains(&source.len()) && !source.contains('\0');
    assert_eq!(Manifest::parse(&source).is_ok(), readable);
    assert!((1..=MAX_TIMEOUT_MS).contains(&manifest.timeout.as_millis()));
    for text in
        [&manifest.name, &manifest.description, &manifest.version, &manifest.author].into_iter().flatten()
    {
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
    assert!(manifest.warnings.iter().all(|note| (1..=lines).contains(&note.line)));
    let hosts: HashSet<&String> = manifest.connects.iter().collect();
    assert_eq!(hosts.len(), manifest.connects.len(), "a host occurs once");
    for host in &manifest.connects {
        assert!(host.contains('.') && host.is_ascii() && *host == host.to_lowercase(), "{host}");
        let reach = Reach { configured: None, connects: &manifest.connects, plain_http: false };
        assert!(reach.check(&format!("https://{host}/")).is_ok(), "{host}");
        let longer = format!("{host}.evil.invalid");
        assert!(
            hosts.iter().any(|named| longer.ends_with(named.as_str()))
                || reach.check(&format!("https://{longer}/")).is_err(),
            "{host}"
        );
    }
    let again = Manifest::inspect(&source).expect("it was read a moment ago");
    assert_eq!(Permissions::from(&again), Permissions::from(&manifest));
    assert!(!manifest.matches.as_written().is_empty());
}
