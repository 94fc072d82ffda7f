//! Merges flags, environment, systemd credentials and file. Problems of the sources themselves (unknown names, values
//! of the wrong type, unreadable secret files) are reported here.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use hub_core::{private_files, secret::Secret};
use toml::Spanned;

use super::{
    DEFAULT_FILE,
    setting::{Origin, SETTINGS, Setting},
    warnings::Warning,
};

/// Sources of the settings, as the process was started with them. An empty value counts as not set.
#[derive(Debug, Default, Clone)]
pub struct Sources {
    /// Flags by setting name.
    pub flags: BTreeMap<String, String>,
    /// `--config`.
    pub config_file: Option<PathBuf>,
    /// The whole environment.
    pub env: BTreeMap<String, String>,
}

/// A value and its origin.
#[derive(Debug, Clone)]
pub struct Found {
    pub text: Secret,
    pub origin: Origin,
}

/// The given settings, each from the source with the highest priority.
#[derive(Debug, Default)]
pub struct Given {
    pub values: BTreeMap<&'static str, Found>,
    /// The file that was read.
    pub file: Option<PathBuf>,
}

/// Problems and warnings.
#[derive(Debug, Default)]
pub struct Findings {
    /// Problems that keep the hub from starting.
    pub problems: Vec<String>,
    /// Probable mistakes that do not.
    pub warnings: Vec<Warning>,
}

impl Findings {
    pub fn problem(&mut self, text: impl Into<String>) {
        self.problems.push(text.into());
    }

    /// Reports a name that is not a setting, or a source that cannot be read.
    fn unknown(&mut self, text: impl Into<String>) {
        self.warnings.push(Warning::new("env.unknown", text));
    }
}

/// Variables that are not settings. The last four are variables of the command line.
const OTHER_VARIABLES: [&str; 6] =
    ["HUB_CONFIG", "HUB_UPDATE_OPENAPI", "HUB_SERVER", "HUB_TOKEN", "HUB_PROFILE", "HUB_WEBHOOK_SECRET"];

/// Variable with the directory of a service's systemd credentials (`LoadCredential=`).
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// Reads all sources, by priority: flag, environment, credential, file.
pub fn gather(sources: &Sources, findings: &mut Findings) -> Given {
    let env: BTreeMap<&str, &str> = sources
        .env
        .iter()
        .filter(|(name, value)| name.starts_with("HUB_") && !value.trim().is_empty())
        .map(|(name, value)| (name.as_str(), value.trim()))
        .collect();
    check_names(env.keys().copied(), findings);
    let credentials = list_credentials(&sources.env, findings);
    let file = sources.config_file.clone().or_else(|| env.get("HUB_CONFIG").map(PathBuf::from));
    let (file, keys) = read_file(file, findings);
    let mut values = BTreeMap::new();
    for setting in SETTINGS {
        let flag = sources
            .flags
            .get(setting.name)
            .filter(|text| !text.trim().is_empty())
            .map(|text| Found { text: text.as_str().into(), origin: Origin::Flag(setting.flag()) });
        let variable = setting.variable();
        let found = flag
            .or_else(|| {
                let get = |name: &str| env.get(name).map(|text| (*text).to_owned());
                direct_or_file(setting, &variable, "_FILE", get, Origin::Variable, findings)
            })
            .or_else(|| credential(setting, credentials.get(setting.name)?, findings))
            .or_else(|| {
                let get = |name: &str| {
                    keys.get(name).map(|(text, _)| text.clone()).filter(|text| !text.trim().is_empty())
                };
                let line = |name: &str| keys.get(name).map_or(0, |(_, line)| *line);
                let origin = |name: String| Origin::File(name.clone(), line(&name));
                direct_or_file(setting, setting.name, "_file", get, origin, findings)
            });
        if let Some(found) = found {
            values.insert(setting.name, found);
        }
    }
    Given { values, file }
}

fn check_names<'e>(present: impl Iterator<Item = &'e str>, findings: &mut Findings) {
    // Compare without the common prefix, which would make all names similar.
    let other = OTHER_VARIABLES.map(|name| name.replacen("HUB_", "", 1));
    let known: Vec<String> = names_in_file().map(|name| name.to_uppercase()).chain(other).collect();
    for name in present {
        let bare = name.strip_prefix("HUB_").unwrap_or(name);
        if !known.iter().any(|known| known == bare) {
            let hint = suggest(bare, &known, "HUB_");
            findings.unknown(format!("{name} is not a setting of the hub{hint}"));
        }
    }
}

/// Returns the keys of the configuration file: every setting, and `…_file` of those that may be in a separate file.
fn names_in_file() -> impl Iterator<Item = String> {
    SETTINGS.iter().flat_map(|setting| {
        let file = setting.in_file.then(|| format!("{}_file", setting.name));
        [Some(setting.name.to_owned()), file].into_iter().flatten()
    })
}

/// Returns the credentials of the service that are settings, with their files. Others are reported.
fn list_credentials(env: &BTreeMap<String, String>, findings: &mut Findings) -> BTreeMap<String, PathBuf> {
    let Some(folder) = env.get(CREDENTIALS).filter(|path| !path.is_empty()) else { return BTreeMap::new() };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        // The directory may be that of another service, which started this process.
        Err(error) => {
            findings.unknown(format!("{CREDENTIALS}: {folder}: {error}"));
            return BTreeMap::new();
        }
    };
    let mut files: BTreeMap<String, PathBuf> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .collect();
    let known = SETTINGS.iter().filter(|setting| setting.in_file).map(|setting| setting.name.to_owned());
    let known: Vec<String> = known.collect();
    files.retain(|name, _| {
        let is_known = known.contains(name);
        if !is_known {
            let hint = suggest(name, &known, "");
            findings.unknown(format!("no setting is read from the credential {name}{hint}"));
        }
        is_known
    });
    files
}

/// Reads a credential regardless of its mode bits. Only this service can read it: systemd grants access to the user
/// of the service by an ACL, which the bits show as access of the group.
fn credential(setting: &Setting, path: &Path, findings: &mut Findings) -> Option<Found> {
    let origin = Origin::Credential(setting.name);
    match read_text(path) {
        Ok(text) => Some(Found { text, origin }),
        Err(reason) => {
            findings.problem(format!("{origin}: {}: {reason}", path.display()));
            None
        }
    }
}

/// Returns the value of a name, or where the setting allows it the content of the file that `name` + `suffix`
/// specifies.
fn direct_or_file(
    setting: &Setting,
    name: &str,
    suffix: &str,
    get: impl Fn(&str) -> Option<String>,
    origin: impl Fn(String) -> Origin,
    findings: &mut Findings,
) -> Option<Found> {
    let file_name = format!("{name}{suffix}");
    let direct = get(name);
    let in_file = setting.in_file.then(|| get(&file_name)).flatten();
    match (direct, in_file) {
        (Some(_), Some(_)) => {
            findings.problem(format!("{} and {} are both set; keep one", origin(name.to_owned()), file_name));
            None
        }
        (Some(text), None) => Some(Found { text: text.into(), origin: origin(name.to_owned()) }),
        (None, Some(path)) => {
            let origin = origin(file_name);
            match read_secret(setting, Path::new(&path)) {
                Ok(text) => Some(Found { text, origin }),
                Err(reason) => {
                    findings.problem(format!("{origin}: {path}: {reason}"));
                    None
                }
            }
        }
        (None, None) => None,
    }
}

/// Reads the file of a secret. Only the owner may have access to the sealing key; orchestrators provide other secrets
/// with wider access.
fn read_secret(setting: &Setting, path: &Path) -> Result<Secret, String> {
    if setting.name == "secret_key" {
        private_files::check_key_file(path).map_err(|error| error.to_string())?;
    }
    read_text(path)
}

fn read_text(path: &Path) -> Result<Secret, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() { Err("the file is empty".to_owned()) } else { Ok(text.into()) }
}

/// Reads the named file, which must exist, or `hub.toml` in the working directory or in `/etc/hub`, if it exists.
fn read_file(named: Option<PathBuf>, findings: &mut Findings) -> (Option<PathBuf>, Keys) {
    let usual = ["hub.toml", "/etc/hub/hub.toml"].map(PathBuf::from);
    let Some(path) = named.or_else(|| usual.into_iter().find(|path| path.exists())) else {
        return (None, BTreeMap::new());
    };
    let keys = match std::fs::read_to_string(&path) {
        Ok(text) => parse_file(&path, &text, findings),
        Err(error) => {
            findings.problem(format!("{}: {error}", path.display()));
            BTreeMap::new()
        }
    };
    (Some(path), keys)
}

/// Returns the defaults as texts, except empty ones.
pub fn defaults() -> BTreeMap<String, String> {
    let texts = default_table().into_iter().filter_map(|(key, value)| Some((key, as_text(&value)?)));
    texts.filter(|(_, text)| !text.is_empty()).collect()
}

/// Returns the settings that `default.toml` contains in comments.
pub fn default_table() -> toml::Table {
    let shown = DEFAULT_FILE.lines().filter_map(|line| line.strip_prefix("# "));
    let settings = shown.filter(|line| {
        line.split_once(" = ").is_some_and(|(key, _)| SETTINGS.iter().any(|setting| setting.name == key))
    });
    settings.collect::<Vec<_>>().join("\n").parse().expect("the default file is TOML")
}

/// Keys of a configuration file with their values as texts, and the lines they are in.
type Keys = BTreeMap<String, (String, usize)>;

/// The keys of a configuration file; lists become comma-separated.
fn parse_file(path: &Path, text: &str, findings: &mut Findings) -> Keys {
    let path = path.display();
    let table: BTreeMap<Spanned<String>, toml::Value> = match toml::from_str(text) {
        Ok(table) => table,
        Err(error) => {
            // Leave out the line that the error would show: it may contain a secret.
            let at = error.span().map_or_else(String::new, |span| format!(":{}", line_of(text, span.start)));
            findings.problem(format!("{path}{at} is not valid TOML: {}", error.message().trim_end()));
            return BTreeMap::new();
        }
    };
    let known: Vec<String> = names_in_file().collect();
    let mut keys = BTreeMap::new();
    for (key, value) in table {
        let line = line_of(text, key.span().start);
        let key = key.into_inner();
        if !known.contains(&key) {
            let hint = suggest(&key, &known, "");
            findings.problem(format!("{path}:{line}: {key} is not a setting{hint}"));
            continue;
        }
        match as_text(&value) {
            Some(text) => {
                keys.insert(key, (text, line));
            }
            None => findings.problem(format!(
                "{path}:{line}: {key} must be a text, a number, a boolean or a list of them"
            )),
        }
    }
    keys
}

/// Returns the number of the line that contains this byte.
fn line_of(text: &str, byte: usize) -> usize {
    text.as_bytes().iter().take(byte).filter(|byte| **byte == b'\n').count() + 1
}

/// Suggests the name most similar to `unknown`, if one is similar enough.
fn suggest(unknown: &str, known: &[String], prefix: &str) -> String {
    let similarity = |name: &str| strsim::jaro_winkler(unknown, name);
    let best = known.iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    let best = best.filter(|name| similarity(name) > 0.8);
    best.map(|name| format!("; did you mean {prefix}{name}?")).unwrap_or_default()
}

fn as_text(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        toml::Value::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(as_text).collect();
            Some(items?.join(","))
        }
        _ => None,
    }
}
