//! The command line of the server: its commands and flags, and the sources of its settings.

use std::{collections::BTreeMap, path::PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::config::{SETTINGS, Setting, Sources};

/// Settings that are on by default and have a flag that turns them off.
const SWITCHES: [(&str, &str, &str); 2] = [
    ("demo", "no-demo", "Do not create a demo bot, channel and user [env: HUB_DEMO=false]"),
    ("migrate", "no-migrate", "Refuse to start on an older schema [env: HUB_MIGRATE=false]"),
];

/// The settings that have a flag with a value.
fn flagged() -> impl Iterator<Item = &'static Setting> {
    SETTINGS
        .iter()
        .filter(|setting| !setting.secret && !SWITCHES.iter().any(|(switched, ..)| *switched == setting.name))
}

/// The flags: one per setting that is not a secret, and `--no-…` for settings that are on by default.
pub fn command() -> Command {
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .global(true)
        .help("Configuration file [default: hub.toml here or in /etc/hub]");
    let settings = flagged().map(|setting| {
        let help = format!("{} [env: {}]", setting.help, setting.variable());
        Arg::new(setting.name).long(setting.flag()).value_name(setting.value).global(true).help(help)
    });
    let switches = SWITCHES
        .map(|(_, flag, help)| Arg::new(flag).long(flag).action(ArgAction::SetTrue).global(true).help(help));
    let file = Arg::new("file")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .default_value("hub.toml")
        .help("Path of the new file");
    Command::new("hub-server")
        .version(env!("CARGO_PKG_VERSION"))
        .about("The server of Message Hub")
        .after_help(
            "Settings can also come from the environment (HUB_…) and from hub.toml; flags have priority.",
        )
        .args([config])
        .args(settings)
        .args(switches)
        .subcommand(
            Command::new("health")
                .about("Check whether the configured hub can serve: exit code 0, or 1 and the reason"),
        )
        .subcommand(
            Command::new("config")
                .about("Write or check the configuration")
                .subcommand_required(true)
                .subcommand(
                    Command::new("init").about("Write a hub.toml that documents every setting").arg(file),
                )
                .subcommand(
                    Command::new("check")
                        .about("Validate the settings; print those that are not defaults")
                        .after_help("Exit codes: 0 all settings are valid, 9 one is not")
                        .arg(
                            Arg::new("all")
                                .long("all")
                                .action(ArgAction::SetTrue)
                                .help("Print all settings, including defaults"),
                        ),
                ),
        )
}

/// The sources of the settings: flags, wherever they are, and the environment.
pub fn sources(matches: &ArgMatches) -> Sources {
    let deepest = match matches.subcommand() {
        Some((_, config)) => config.subcommand().map_or(config, |(_, arguments)| arguments),
        None => matches,
    };
    let given = |setting: &Setting| deepest.get_one::<String>(setting.name).cloned();
    let mut flags: BTreeMap<String, String> =
        flagged().filter_map(|setting| Some((setting.name.to_owned(), given(setting)?))).collect();
    for (name, ..) in SWITCHES.iter().filter(|(_, flag, _)| deepest.get_flag(flag)) {
        flags.insert((*name).to_owned(), "false".to_owned());
    }
    let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    Sources {
        flags,
        config_file: deepest.get_one::<PathBuf>("config").cloned(),
        env: std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_but_the_secrets_has_a_flag() {
        command().debug_assert();
        let matches =
            command().try_get_matches_from(["hub-server", "--no-demo", "--data-dir", "/d"]).unwrap();
        let flags = sources(&matches).flags;
        assert_eq!(
            flags,
            [("data_dir", "/d"), ("demo", "false")].map(|(a, b)| (a.to_owned(), b.to_owned())).into()
        );
        assert!(command().try_get_matches_from(["hub-server", "--secret-key", "x"]).is_err());
        let check = ["hub-server", "--log", "warn", "config", "check", "--listen", "localhost:1"];
        let flags = sources(&command().try_get_matches_from(check).unwrap()).flags;
        assert_eq!(flags.len(), 2, "flags count before and behind the subcommand: {flags:?}");
    }
}
