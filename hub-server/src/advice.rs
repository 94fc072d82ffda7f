//! The advice of errors in the words of the server: commands, variables and API calls.

use hub_core::{
    Error,
    error::{Advice, Setting},
};

/// The hint of an error, with its advice.
pub fn hint(error: &Error) -> Option<String> {
    error.hint_in(words)
}

/// The command, the variable or the call.
pub fn words(advice: &Advice) -> String {
    match advice {
        Advice::BindBot => "hub-cli bots bind, or POST /api/bots/bind/start".to_owned(),
        Advice::RestoreBackup => "hub-cli db restore BACKUP --yes".to_owned(),
        Advice::MigrateDatabase => "hub-cli db migrate".to_owned(),
        Advice::RotateKey => "hub-cli db encrypt rotate-key".to_owned(),
        Advice::NewKey => {
            "openssl rand -hex 32 > new.key; chmod 600 new.key; then --new-key-file new.key".to_owned()
        }
        Advice::Confirm => "--yes".to_owned(),
        Advice::CreateAdministrator => "hub-cli --local users create-admin".to_owned(),
        Advice::Set(setting, Some(value)) => format!("start the server with {}={value}", variable(*setting)),
        Advice::Set(setting, None) => format!("set {}", variable(*setting)),
    }
}

pub(crate) fn variable(setting: Setting) -> String {
    variable_of(setting.as_str())
}

/// The environment variable of a setting: `HUB_DATA_DIR` of `data_dir`.
pub(crate) fn variable_of(name: &str) -> String {
    format!("HUB_{}", name.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SETTINGS;

    #[test]
    fn every_setting_that_an_error_names_exists_under_that_name() {
        for setting in Setting::ALL {
            assert!(SETTINGS.iter().any(|known| known.name == setting.as_str()), "{setting}");
        }
    }

    #[test]
    fn a_private_address_comes_with_the_variable_that_allows_it() {
        let rule = Some("127.0.0.1:3000".to_owned());
        let refused =
            Error::invalid("url", "is private").with_advice([Advice::Set(Setting::EgressAllow, rule)]);
        let expected = "start the server with HUB_EGRESS_ALLOW=127.0.0.1:3000";
        assert_eq!(hint(&refused).as_deref(), Some(expected));
    }
}
