use hub_core::sandbox::CallFilter;

use super::*;

pub(super) fn load(
    flags: &[(&str, &str)],
    env: &[(&str, &str)],
    file: Option<&str>,
) -> Result<Config, Problems> {
    let own = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hub.toml");
    std::fs::write(&path, file.unwrap_or("")).unwrap();
    Config::load(&Sources { flags: own(flags), env: own(env), config_file: Some(path) })
}

fn warnings(config: &Config) -> Vec<String> {
    config.warnings.iter().map(ToString::to_string).collect()
}

fn effective(config: &Config, name: &str) -> (String, String) {
    let (_, value, origin) = config.effective.iter().find(|(found, ..)| *found == name).unwrap();
    (value.clone(), origin.to_string())
}

#[test]
fn a_flag_beats_a_variable_beats_the_file_beats_the_default() {
    let file = Some("node_name = 'file'");
    let name = |flags: &[(&str, &str)], env: &[(&str, &str)], file| {
        let config = load(flags, env, file).unwrap();
        assert_eq!(config.hub.node_name, effective(&config, "node_name").0);
        effective(&config, "node_name")
    };
    let pair = |value: &str, origin: &str| (value.to_owned(), origin.to_owned());
    let (flag, env) = ([("node_name", "flag")], [("HUB_NODE_NAME", "env")]);
    assert_eq!(name(&flag, &env, file), pair("flag", "--node-name"));
    assert_eq!(name(&[], &env, file), pair("env", "HUB_NODE_NAME"));
    assert_eq!(
        name(&[], &[("HUB_NODE_NAME", " ")], file),
        pair("file", "node_name in line 1 of the configuration file")
    );
    assert_eq!(name(&[], &[], None), pair("", "default"));
}

/// Everything that a start, `config check` and `doctor` show of settings.
fn everything_shown(env: &[(&str, &str)], file: Option<&str>) -> String {
    let loaded = load(&[], env, file);
    let shown = match &loaded {
        Ok(config) => format!("{:?}{:?}", config.effective, config.warnings),
        Err(problems) => problems.to_string(),
    };
    format!("{shown}{}", Report::new(loaded, true))
}

#[test]
fn no_setting_shows_a_secret_whatever_is_wrong_with_it() {
    // Passwords with characters that have a meaning in URLs, a token in place of a user, and one in a query.
    let urls = [
        "SCHEME://odd:p@ss:w/r#marker@host/x",
        "SCHEME://odd:marker@[host/x",
        "SCHEME://odd:marker@host:port/x",
        "SCHEME://odd:1/marker@host/x",
        "SCHEME://marker@host/x",
        "SCHEME://host/x?token=marker",
        "SCHEME://host/x#marker",
    ];
    for setting in SETTINGS {
        let (variable, value) = (setting.variable(), setting.value);
        let values: Vec<String> = if setting.secret {
            vec!["marker".to_owned(), "marker\nmarker".to_owned(), "postgres://marker".to_owned()]
        } else if value.contains("URL")
            || value.contains("RULE")
            || value.contains("ADDR")
            || value.contains("RANGE")
        {
            let schemes = ["postgres", "s3", "https", "file", "nonsense"];
            urls.iter().flat_map(|url| schemes.map(|scheme| url.replace("SCHEME", scheme))).collect()
        } else {
            continue;
        };
        for value in &values {
            let shown = everything_shown(&[(&variable, value)], None);
            assert!(!shown.contains("marker"), "{variable}={value}: {shown}");
            let line = format!("{} = {value:?}", setting.name);
            let shown = everything_shown(&[], Some(&line));
            assert!(!shown.contains("marker"), "{line}: {shown}");
            // A line that is not TOML.
            let shown = everything_shown(&[], Some(&line[..line.len() - 1]));
            assert!(shown.contains("hub.toml:1 is not valid TOML") && !shown.contains("marker"), "{shown}");
        }
    }
}

#[test]
fn the_limit_of_bots_is_a_number_from_one_on() {
    let limit = |value| load(&[], &[("HUB_MAX_BOTS_PER_USER", value)], None);
    assert_eq!(load(&[], &[], None).unwrap().hub.max_bots_per_user, 20);
    assert_eq!(limit("10000").unwrap().hub.max_bots_per_user, 10_000);
    for value in ["0", "-1", "many", "4294967296"] {
        let problems = limit(value).unwrap_err().problems;
        assert_eq!(problems.len(), 1);
        assert!(problems[0].contains("a number of bots from 1 on"), "{problems:?}");
    }
}

#[test]
fn all_problems_are_reported_at_once() {
    let problems = load(
        &[("listen", "nonsense,127.0.0.1:9800")],
        &[
            ("HUB_NETWORK", "wechat"),
            ("HUB_EGRESS_ALLOW", "10.0.0.0/8,10.0.0.0/99"),
            ("HUB_TRUSTED_PROXIES", "proxy"),
            ("HUB_SECRET_KEY", "short"),
            ("HUB_ADMIN_USERNAME", "ada"),
            ("HUB_DATABASE_URL", "mysql://db"),
            ("HUB_SIM_LISTEN", "9801"),
            ("HUB_LISTN", "x"),
        ],
        Some("registration = 'maybe'\nmax_body = 'big'\nlisten_on = 'x'\nrate_default = 0\npublic_url = 'ftp://x'"),
    )
    .unwrap_err();
    for (sign, rule) in [
        ("--listen: \"nonsense\"", "an address with a port"),
        ("HUB_NETWORK: \"wechat\"", "sim, ilink or both"),
        ("HUB_EGRESS_ALLOW: \"10.0.0.0/99\"", "range"),
        ("HUB_TRUSTED_PROXIES: \"proxy\"", "range"),
        ("HUB_SECRET_KEY", "32 bytes"),
        ("HUB_ADMIN_USERNAME", "admin_password"),
        ("HUB_DATABASE_URL", "postgres://"),
        ("HUB_SIM_LISTEN", "address"),
        ("registration in line 1 of the configuration file: \"maybe\"", "open, invite or closed"),
        ("max_body", "bytes"),
        ("hub.toml:3: listen_on is not a setting", "did you mean listen?"),
        ("rate_default", "from 1"),
        ("public_url", "http://"),
    ] {
        let fits = |problem: &&String| problem.contains(sign) && problem.contains(rule);
        assert_eq!(problems.problems.iter().filter(fits).count(), 1, "{sign}: {problems}");
    }
    assert_eq!(problems.problems.len(), 13, "{problems}");
    let warned: Vec<String> = problems.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warned, ["HUB_LISTN is not a setting of the hub; did you mean HUB_LISTEN?"]);
    assert!(!problems.to_string().contains("short"), "the refused key is not shown");
}

#[test]
fn a_public_url_may_have_a_plain_path() {
    for (written, read) in [
        ("https://hub.example", "https://hub.example/"),
        ("https://hub.example/hub", "https://hub.example/hub/"),
        ("https://hub.example:8443/a/b-c_2/", "https://hub.example:8443/a/b-c_2/"),
    ] {
        let config = load(&[("public_url", written)], &[], None).unwrap();
        assert_eq!(config.public_url.unwrap().as_str(), read);
    }
    for refused in ["/hub?x=1", "/hub#x", "/a//b", "/a b", "/a'b", "/ä", "/a&b"] {
        let problems =
            load(&[("public_url", &format!("https://hub.example{refused}"))], &[], None).unwrap_err();
        assert!(problems.problems[0].contains("plain path"), "{problems}");
    }
    assert!(load(&[("public_url", "https://ann:secret@hub.example")], &[], None).is_err());
}

#[test]
fn metrics_are_off_until_they_are_configured() {
    let config = load(&[], &[], None).unwrap();
    assert!(config.metrics_listen.is_none() && config.metrics_token.is_none());
    let env = [("HUB_METRICS_LISTEN", "127.0.0.1:9802"), ("HUB_METRICS_TOKEN", "0123456789abcdef")];
    let config = load(&[], &env, None).unwrap();
    assert_eq!(config.metrics_listen, Some("127.0.0.1:9802".parse().unwrap()));
    assert_eq!(effective(&config, "metrics_token").0, "***");
    let wrong = [
        ("HUB_METRICS_LISTEN", "9802"),
        ("HUB_METRICS_TOKEN", "short"),
        ("HUB_MAX_CONNECTIONS", "0"),
        ("HUB_MAX_CONNECTIONS_PER_ADDRESS", "many"),
    ];
    let problems = load(&[], &wrong, None).unwrap_err().problems;
    assert_eq!(problems.len(), wrong.len(), "{problems:?}");
    assert!(!problems.concat().contains("short"));
}

#[test]
fn a_collector_needs_a_server_that_can_reach_one() {
    let loaded = load(&[("otlp_endpoint", "http://localhost:4318")], &[], None);
    if cfg!(feature = "otel") {
        assert!(loaded.unwrap().otlp_endpoint.is_some());
    } else {
        let problems = loaded.unwrap_err().problems;
        assert!(problems[0].starts_with("--otlp-endpoint: ") && problems[0].contains("--features otel"));
    }
}

#[test]
fn unknown_variables_are_named_with_the_nearest_setting() {
    for (unknown, nearest) in [
        ("HUB_ADMIN_USER", Some("HUB_ADMIN_USERNAME")),
        ("HUB_DATADIR", Some("HUB_DATA_DIR")),
        ("HUB_SECRETKEY_FILE", Some("HUB_SECRET_KEY_FILE")),
        ("HUB_ZZZ", None),
    ] {
        let warnings = warnings(&load(&[], &[(unknown, "x"), ("HOME", "/home/ada")], None).unwrap());
        let hint = nearest.map_or(String::new(), |name| format!("; did you mean {name}?"));
        assert_eq!(warnings, [format!("{unknown} is not a setting of the hub{hint}")]);
    }
}

#[test]
fn development_mode_is_loopback_without_https() {
    let mode = |listen, url| {
        let mut env = vec![("HUB_LISTEN", listen)];
        if let Some(url) = url {
            env.push(("HUB_PUBLIC_URL", url));
        }
        let config = load(&[], &env, None).unwrap();
        assert_eq!(config.hub.setup_token_required, !config.development);
        assert_eq!(config.networks, Networks { sim: config.development, ilink: !config.development });
        let is_optional = config.sandbox.filter == CallFilter::Optional;
        assert_eq!(is_optional, config.development, "authors run plugins on any system");
        config.development
    };
    assert!(mode("localhost:9800", None));
    assert!(mode("127.0.0.1:1,[::1]:1", Some("http://localhost:1")));
    assert!(!mode("127.0.0.1:9800", Some("https://hub.example")));
    assert!(!mode("0.0.0.0:9800", None));
    assert!(!mode("127.0.0.1:9800,[::]:9800", None));
}

#[test]
fn the_data_folder_follows_the_environment() {
    let folder = |env: &[(&str, &str)]| load(&[], env, None).unwrap().data_dir.display().to_string();
    assert_eq!(folder(&[("HUB_DATA_DIR", "/d"), ("STATE_DIRECTORY", "/s")]), "/d");
    assert_eq!(folder(&[("STATE_DIRECTORY", "/s:/t"), ("HOME", "/h")]), "/s");
    assert_eq!(folder(&[("XDG_DATA_HOME", "/x"), ("HOME", "/h")]), "/x/hub");
    assert_eq!(folder(&[("HOME", "/h")]), "/h/.local/share/hub");
    assert_eq!(folder(&[]), "/var/lib/hub");
}

#[test]
fn paths_are_whole_and_no_shell_reads_them() {
    for (variable, text, sign) in [
        ("HUB_DATA_DIR", "~/x", '~'),
        ("HUB_DATA_DIR", "~ada/hub", '~'),
        ("HUB_DATA_DIR", "$HOME/hub", '$'),
        ("HUB_BACKUP_TO", "~/backups", '~'),
        ("HUB_BACKUP_TO", "${BACKUPS}", '$'),
        ("HUB_MEDIA_URL", "file:///~/media", '~'),
        ("HUB_DATABASE_URL", "sqlite://~/hub.db", '~'),
    ] {
        let problems = load(&[], &[(variable, text)], None).unwrap_err().to_string();
        let says = format!("only a shell replaces {sign}");
        assert!(problems.contains(variable) && problems.contains(&says), "{variable}={text}: {problems}");
    }
    let config = load(&[], &[("HUB_DATA_DIR", "/srv/a~b/$c")], None).unwrap();
    assert_eq!(config.data_dir.display().to_string(), "/srv/a~b/$c");
}

#[test]
fn secrets_come_from_files_and_are_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let password = folder.path().join("password");
    std::fs::write(&password, "correct horse\n").unwrap();
    let path = password.to_str().unwrap();
    let env = [("HUB_ADMIN_USERNAME", "ada"), ("HUB_ADMIN_PASSWORD_FILE", path)];
    let config = load(&[], &env, None).unwrap();
    assert_eq!(config.admin.as_ref().unwrap().1.expose(), "correct horse");
    let shown = ("***".to_owned(), "HUB_ADMIN_PASSWORD_FILE".to_owned());
    assert_eq!(effective(&config, "admin_password"), shown);
    assert!(!format!("{config:?}").contains("horse"));

    let both = load(&[], &[env[0], env[1], ("HUB_ADMIN_PASSWORD", "x")], None).unwrap_err();
    assert!(both.to_string().contains("both set"), "{both}");
    let gone = load(&[], &[("HUB_ADMIN_PASSWORD_FILE", "/nowhere"), env[0]], None).unwrap_err();
    assert!(gone.to_string().contains("/nowhere"), "{gone}");

    let url = "postgres://hub:hunter2@db/hub";
    let config = load(&[], &[("HUB_DATABASE_URL", url)], None).unwrap();
    let in_file = folder.path().join("database.url");
    std::fs::write(&in_file, url).unwrap();
    let from_file = load(&[], &[("HUB_DATABASE_URL_FILE", in_file.to_str().unwrap())], None).unwrap();
    assert_eq!(effective(&from_file, "database_url").0, effective(&config, "database_url").0);
    assert_eq!(effective(&config, "database_url").0, "postgres://hub:***@db/hub");
    assert!(
        config.warnings[0].text.contains("secret_key"),
        "nodes must share the key: {:?}",
        config.warnings
    );
}

#[test]
fn secrets_come_from_credentials_of_systemd() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let key = "cd".repeat(32);
    // Which others may read by its mode, as systemd's own show it.
    put("secret_key", &format!("{key}\n"));
    put("database_url", "postgres://hub:hunter2@db/hub\n");
    put("metrics_token", "0123456789abcdef");
    let credentials = ("CREDENTIALS_DIRECTORY", path);
    let config = load(&[], &[credentials], Some("metrics_token = 'another one of the file'")).unwrap();
    assert_eq!(config.home().key.unwrap().0, [0xcd; 32]);
    let origin = |name: &str| format!("credential {name}");
    assert_eq!(effective(&config, "secret_key"), ("***".to_owned(), origin("secret_key")));
    assert_eq!(effective(&config, "metrics_token").1, origin("metrics_token"), "before the file");
    let database = ("postgres://hub:***@db/hub".to_owned(), origin("database_url"));
    assert_eq!(effective(&config, "database_url"), database);

    let token = ("HUB_METRICS_TOKEN", "of the environment");
    let config = load(&[], &[credentials, token], None).unwrap();
    assert_eq!(effective(&config, "metrics_token").1, "HUB_METRICS_TOKEN", "behind the environment");

    put("secret_kye", "x");
    put("node_name", "one");
    let config = load(&[], &[credentials], None).unwrap();
    let warning = |name: &str, hint: &str| format!("no setting is read from the credential {name}{hint}");
    assert!(
        warnings(&config).contains(&warning("secret_kye", "; did you mean secret_key?")),
        "{:?}",
        config.warnings
    );
    assert!(warnings(&config).contains(&warning("node_name", "")), "{:?}", config.warnings);
    assert_eq!(config.hub.node_name, "");

    put("secret_key", "short");
    put("metrics_token", "");
    let problems = load(&[], &[credentials], None).unwrap_err();
    assert_eq!(problems.problems.len(), 2, "{problems}");
    let text = problems.to_string();
    assert!(text.contains("credential secret_key: must be 32 bytes") && !text.contains("short"), "{text}");
    assert!(text.contains("credential metrics_token: ") && text.contains("the file is empty"), "{text}");

    let config = load(&[], &[("CREDENTIALS_DIRECTORY", "/nowhere")], None).unwrap();
    assert!(
        config.warnings[0].text.starts_with("CREDENTIALS_DIRECTORY: /nowhere: "),
        "{:?}",
        config.warnings
    );
}

#[cfg(unix)]
#[test]
fn a_named_key_file_must_be_a_private_file() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret.key");
    let refused =
        || load(&[], &[("HUB_SECRET_KEY_FILE", path.to_str().unwrap())], None).unwrap_err().to_string();
    std::fs::write(&path, "ab".repeat(32)).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(refused().contains("chmod 600"), "{}", refused());
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(refused().contains("is a directory") && !refused().contains("chmod"), "{}", refused());
}

#[test]
fn the_default_file_shows_every_setting_with_its_default() {
    let env = [("HOME", "/home/ada")];
    let plain = load(&[], &env, None).unwrap();
    let uncommented: Vec<String> = DEFAULT_FILE
        .lines()
        .filter_map(|line| line.strip_prefix("# "))
        .filter(|line| {
            line.split_once(" = ").is_some_and(|(key, _)| SETTINGS.iter().any(|setting| setting.name == key))
        })
        .map(str::to_owned)
        .collect();
    assert_eq!(uncommented.len(), SETTINGS.len(), "one line per setting: {uncommented:#?}");
    for line in &uncommented {
        let (key, value) = line.split_once(" = ").unwrap();
        let shown = effective(&plain, key).0;
        if value != "\"\"" {
            let config = load(&[], &env, Some(line)).unwrap();
            assert_eq!(effective(&config, key).0, shown, "{line}");
        }
    }
    assert!(load(&[], &env, Some(DEFAULT_FILE)).unwrap().warnings.is_empty());
}

#[test]
fn programs_that_embed_a_hub_have_the_same_defaults() {
    let config = load(&[], &[], None).unwrap();
    assert_eq!(format!("{:#?}", config.hub), format!("{:#?}", HubConfig::default()));
    assert_eq!(format!("{:#?}", config.rate_limits), format!("{:#?}", RateLimitSettings::default()));
}

#[test]
fn nightly_backups_require_a_target_and_sqlite() {
    assert!(load(&[], &[], None).unwrap().nightly().is_none(), "off unless a place is set");
    let config = load(&[("backup_to", "/mnt/backup")], &[("HUB_BACKUP_KEEP", "3")], None).unwrap();
    let nightly = config.nightly().unwrap();
    assert_eq!((nightly.target.to_string(), nightly.at.to_string()), ("/mnt/backup".into(), "03:00".into()));
    assert_eq!((nightly.keep.get(), nightly.passphrase.is_none()), (3, true));
    let bucket = [
        ("HUB_BACKUP_TO", "s3://backups/hub/"),
        ("HUB_BACKUP_AT", "23:30"),
        ("HUB_MEDIA_S3_ACCESS_KEY_ID", "somebody"),
        ("HUB_MEDIA_S3_SECRET_ACCESS_KEY", "planted-s3-secret"),
    ];
    let open = load(&[], &bucket, None).unwrap();
    assert!(
        open.warnings.iter().any(|warning| warning.text.contains("backup_passphrase")),
        "{:?}",
        open.warnings
    );
    let sealed = [&bucket[..], &[("HUB_BACKUP_PASSPHRASE", "planted-passphrase")]].concat();
    let sealed = load(&[], &sealed, None).unwrap();
    assert_eq!(sealed.nightly().unwrap().target.to_string(), "s3://backups/hub");
    assert!(sealed.warnings.iter().all(|warning| !warning.text.contains("backup")), "{:?}", sealed.warnings);
    assert_eq!(effective(&sealed, "backup_passphrase").0, "***");
    assert!(!format!("{sealed:?}").contains("planted"));

    for (name, value, rule) in [
        ("backup_to", "s3://backups", "media_s3_access_key_id"),
        ("backup_to", "s3:///backups", "s3://bucket/prefix"),
        ("backup_to", "file:///backups", "a folder"),
        ("backup_at", "3 am", "like 03:00"),
        ("backup_keep", "0", "from 1 on"),
    ] {
        let refused = load(&[(name, value)], &[], None).unwrap_err().problems;
        assert!(refused.len() == 1 && refused[0].contains(rule), "{name} {value}: {refused:?}");
    }
    let flags = [("backup_to", "/mnt/backup"), ("database_url", "postgres://localhost/hub")];
    let refused = load(&flags, &[], None).unwrap_err().problems;
    assert!(refused[0].contains("pg_dump"), "{refused:?}");
}

#[test]
fn an_empty_value_counts_as_absent() {
    for setting in SETTINGS {
        let file = format!("{} = ''", setting.name);
        let config = load(&[(setting.name, " ")], &[(&setting.variable(), "")], Some(&file)).unwrap();
        assert_eq!(effective(&config, setting.name).1, "default", "{}", setting.name);
    }
}

#[test]
fn a_probable_mistake_is_a_warning_of_a_doctor_check() {
    let wide = ("HUB_LISTEN", "0.0.0.0:9800");
    let https = ("HUB_PUBLIC_URL", "https://hub.example");
    for (env, check, sign) in [
        (&[("HUB_PUBLIC_URL", "http://hub.example")][..], "public-url.https", "development mode"),
        (
            &[wide, ("HUB_PUBLIC_URL", "http://hub.example"), ("HUB_REGISTRATION", "invite")],
            "public-url.https",
            "unencrypted",
        ),
        (&[("HUB_TRUSTED_PROXIES", "10.0.0.1,::/0")], "proxy.forwarded-headers", "::/0"),
        (&[https], "registration.open", "anyone"),
        (&[wide], "registration.open", "invite or closed"),
    ] {
        let warnings = load(&[], env, None).unwrap().warnings;
        let found = warnings.iter().filter(|warning| warning.check == check && warning.text.contains(sign));
        assert_eq!((found.count(), warnings.len()), (1, 1), "{env:?}: {warnings:?}");
    }
    for env in [
        &[][..],
        &[("HUB_PUBLIC_URL", "http://localhost:9800")],
        &[("HUB_TRUSTED_PROXIES", "10.0.0.0/8")],
        &[https, ("HUB_REGISTRATION", "closed")],
    ] {
        assert!(load(&[], env, None).unwrap().warnings.is_empty(), "{env:?}");
    }
}

#[test]
fn the_report_shows_what_differs_from_the_defaults_and_ends_with_a_verdict() {
    let env = [
        ("HUB_MAX_CONNECTIONS_PER_ADDRESS", "7"),
        ("HUB_LOG", "warn"),
        ("HUB_METRICS_TOKEN", "0123456789abcdef"),
    ];
    let report = |env: &[(&str, &str)], all| Report::new(load(&[], env, None), all).to_string();
    let rows = |report: &str| report.lines().map(str::to_owned).collect::<Vec<_>>();
    let shown = rows(&report(&env, false));
    assert_eq!(
        shown,
        [
            "log                          warn  # HUB_LOG",
            "max_connections_per_address  7     # HUB_MAX_CONNECTIONS_PER_ADDRESS",
            "metrics_token                ***   # HUB_METRICS_TOKEN",
            "ok, 3 settings",
        ]
    );
    let all = rows(&report(&env, true));
    assert_eq!(all.len(), SETTINGS.len() + 1);
    let columns: std::collections::BTreeSet<_> =
        all[..SETTINGS.len()].iter().map(|row| row.split("  # ").next().unwrap().chars().count()).collect();
    assert_eq!(columns.len(), 1, "columns are aligned: {all:#?}");
    assert_eq!(report(&[], false), "ok, 0 settings");
    let wrong = report(&[("HUB_LOG", "hub=verbose"), ("HUB_LISTN", "x")], false);
    assert!(wrong.starts_with("error: HUB_LOG: \"hub=verbose\" is not a log filter"), "{wrong}");
    assert!(wrong.ends_with("\n1 problem, 1 warning"), "{wrong}");
}
