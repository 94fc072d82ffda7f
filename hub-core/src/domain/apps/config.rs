//! Configuration of an app on a bot: texts by name that the bot's owner sets and the app reads. A value may be a secret
//! of another service: the configuration is sealed at rest, and its owner gets masks.

use std::collections::{BTreeMap, btree_map};

use serde::Serializer;

use crate::{
    error::{Error, Problems, Result},
    id::InstallationId,
    model::app::{Installation, InstallationRecord},
    secret::{MASK, Sealed, Sealer, Secret, TokenHash},
    store::Tx,
    text,
    time::Timestamp,
};

/// Maximum number of entries.
pub const MAX_CONFIG_ENTRIES: usize = 64;
/// Maximum length of a name, in characters.
const MAX_NAME: usize = 64;
/// Maximum size of all names and values together, in bytes.
const MAX_BYTES: usize = 16 * 1024;

/// The configuration of an app on a bot: values by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AppConfig(BTreeMap<String, Secret>);

impl FromIterator<(String, Secret)> for AppConfig {
    fn from_iter<I: IntoIterator<Item = (String, Secret)>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

#[cfg(feature = "openapi")]
impl FromIterator<(String, crate::openapi::ConfigValue)> for AppConfig {
    fn from_iter<I: IntoIterator<Item = (String, crate::openapi::ConfigValue)>>(entries: I) -> Self {
        entries.into_iter().map(|(name, value)| (name, value.0)).collect()
    }
}

impl IntoIterator for AppConfig {
    type Item = (String, Secret);
    type IntoIter = btree_map::IntoIter<String, Secret>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl AppConfig {
    /// Decrypts the configuration of an installation.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when it was sealed with another key, or is corrupt.
    pub(super) fn open(sealer: &Sealer, id: InstallationId, sealed: Option<&Sealed>) -> Result<Self> {
        let Some(sealed) = sealed else { return Ok(Self::default()) };
        let text = sealer.open(&place(id), sealed)?;
        serde_json::from_str(text.expose()).map(Self).map_err(Error::internal)
    }

    /// Encrypts it for an installation; `None` without entries.
    fn seal(&self, sealer: &Sealer, id: InstallationId) -> Option<Sealed> {
        let values: BTreeMap<&str, &str> =
            self.0.iter().map(|(name, value)| (&**name, value.expose())).collect();
        (!values.is_empty()).then(|| sealer.seal(&place(id), &Secret::new(text::json(&values))))
    }

    /// Stores it for an installation, sealed.
    pub(super) async fn store(
        &self,
        tx: &mut Tx,
        sealer: &Sealer,
        id: InstallationId,
        now: Timestamp,
    ) -> Result<()> {
        tx.installations().set_config(id, self.seal(sealer, id).as_ref(), now).await
    }

    /// The configuration that replaces this one. A masked value in `new` keeps the stored value of its name.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every bad field: more than [`MAX_CONFIG_ENTRIES`], names and values of more than 16 KiB
    /// together, a name that is not one line of 1 to 64 characters, a masked value for a name without a stored value.
    pub(super) fn replaced_by(&self, new: Self) -> Result<Self> {
        if new.0.len() > MAX_CONFIG_ENTRIES {
            return Err(Error::invalid("config", format!("must have at most {MAX_CONFIG_ENTRIES} entries")));
        }
        let mut problems = Problems::default();
        let mut values = BTreeMap::new();
        for (name, value) in new.0 {
            let field = format!("config.{}", &name[..name.floor_char_boundary(MAX_NAME)]);
            text::check_name(&mut problems, field.clone(), &name, 1..=MAX_NAME);
            let is_masked = value.expose().starts_with(MASK);
            match self.0.get(&name).filter(|_| is_masked) {
                Some(stored) => drop(values.insert(name, stored.clone())),
                None if is_masked => problems.add(field, "is a mask, and no value with this name is stored"),
                None => drop(values.insert(name, value)),
            }
        }
        let bytes: usize = values.iter().map(|(name, value)| name.len() + value.expose().len()).sum();
        let too_large = format!("must be at most {MAX_BYTES} bytes, names and values together");
        problems.check(bytes <= MAX_BYTES, "config", too_large);
        problems.finish()?;
        Ok(Self(values))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The mask of each value by name, for the bot's owner.
    pub(super) fn masked(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|(name, value)| (name.clone(), value.masked())).collect()
    }

    /// Writes the hash of each value by name, which distinguishes requests with an `Idempotency-Key`.
    #[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
    pub(super) fn serialize_hashes<S: Serializer>(
        config: &Option<Self>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let hash = |value: &Secret| TokenHash::of(value.expose()).as_str().to_owned();
        serializer
            .collect_map(config.iter().flat_map(|config| &config.0).map(|(name, value)| (name, hash(value))))
    }
}

/// The place for which the configuration of an installation is sealed.
fn place(id: InstallationId) -> String {
    format!("app_installations.config:{id}")
}

/// The installation with the masks of its configuration.
///
/// # Errors
/// As [`AppConfig::open`].
pub(super) fn shown(record: InstallationRecord, sealer: &Sealer) -> Result<Installation> {
    let InstallationRecord { installation, config } = record;
    let config = AppConfig::open(sealer, installation.id, config.as_ref())?.masked();
    Ok(Installation { config, ..installation })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{id::Id, random::Random};

    fn config(entries: &[(&str, &str)]) -> AppConfig {
        entries.iter().map(|(name, value)| ((*name).to_owned(), Secret::from(*value))).collect()
    }

    fn problem(new: AppConfig) -> (String, String) {
        let error = AppConfig::default().replaced_by(new).unwrap_err();
        let [detail] = error.details() else { panic!("{error:?}") };
        (detail.field.to_string(), detail.reason.to_string())
    }

    #[test]
    fn a_configuration_is_bounded_in_entries_names_and_bytes() {
        let many =
            |count: usize| (0..count).map(|n| (n.to_string(), Secret::from("x"))).collect::<AppConfig>();
        assert!(AppConfig::default().replaced_by(many(64)).is_ok());
        assert_eq!(problem(many(65)), ("config".to_owned(), "must have at most 64 entries".to_owned()));
        let value = "v".repeat(MAX_BYTES - 1);
        assert!(AppConfig::default().replaced_by(config(&[("n", &value)])).is_ok());
        let (field, reason) = problem(config(&[("nn", &value)]));
        assert_eq!((&*field, &*reason), ("config", "must be at most 16384 bytes, names and values together"));
        assert!(AppConfig::default().replaced_by(config(&[(&"名".repeat(64), "")])).is_ok());
        for (name, reason) in [
            ("", "must not be empty"),
            (" ", "must not be blank"),
            ("a\nb", "must be one line without control characters"),
            (&*"n".repeat(65), "must be at most 64 characters"),
        ] {
            let found = problem(config(&[(name, "x")]));
            assert_eq!(found, (format!("config.{}", &name[..name.len().min(64)]), reason.to_owned()));
        }
    }

    #[test]
    fn a_masked_value_keeps_the_stored_value_and_other_names_are_removed() {
        let stored = config(&[("repo", "acme/site"), ("token", "ghp_0123456789"), ("old", "x")]);
        let mut masks = stored.masked();
        assert_eq!((&*masks["repo"], &*masks["token"]), ("***", "***6789"));
        masks.remove("old");
        let sent_back = masks.into_iter().map(|(name, mask)| (name, Secret::from(mask))).collect();
        let kept = stored.replaced_by(sent_back).unwrap();
        assert_eq!(kept, config(&[("repo", "acme/site"), ("token", "ghp_0123456789")]));
        let changed = kept.replaced_by(config(&[("repo", "acme/shop"), ("token", "***")])).unwrap();
        assert_eq!(changed, config(&[("repo", "acme/shop"), ("token", "ghp_0123456789")]));
        let (field, reason) = problem(config(&[("token", "***6789")]));
        assert_eq!((&*field, &*reason), ("config.token", "is a mask, and no value with this name is stored"));
    }

    #[test]
    fn a_configuration_is_sealed_for_its_installation_and_never_printed() {
        let (sealer, id) = (Sealer::new(&[1; 32], Random::seeded(1)), Id::from_u128(1));
        let values = config(&[("token", "ghp_0123456789")]);
        let sealed = values.seal(&sealer, id);
        assert_eq!(AppConfig::open(&sealer, id, sealed.as_ref()).unwrap(), values);
        assert!(AppConfig::open(&sealer, Id::from_u128(2), sealed.as_ref()).is_err());
        assert_eq!(AppConfig::default().seal(&sealer, id), None);
        assert_eq!(AppConfig::open(&sealer, id, None).unwrap(), AppConfig::default());
        assert!(!format!("{values:?}").contains("ghp_"));
    }
}
