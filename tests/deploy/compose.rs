//! The container, the Compose files and Caddy's.

use serde_norway::Value;

use super::{folder, read, read_yaml, succeed};
use crate::clients::installed;

const COMPOSE: [&str; 4] = [
    "docker/compose.yaml",
    "docker/compose.caddy.yaml",
    "docker/compose.litestream.yaml",
    "two-nodes/compose.yaml",
];

#[test]
fn hadolint_has_nothing_to_say_about_the_dockerfile() {
    let Some(mut hadolint) = installed::hadolint() else { return };
    let file = folder().join("docker/Dockerfile");
    assert_eq!(succeed(hadolint.args(["--no-color", "--failure-threshold", "style"]).arg(file)), "");
}

#[test]
fn the_container_runs_unprivileged_keeps_its_data_and_checks_its_health() {
    let file = read("docker/Dockerfile");
    let of_the_image = file.rsplit_once("\nFROM ").unwrap().1;
    for line in ["USER 10001:10001", "VOLUME /var/lib/hub", "ENTRYPOINT [\"hub-server\"]"] {
        assert!(of_the_image.lines().any(|found| found == line), "{line}");
    }
    assert!(
        of_the_image.contains("HUB_DATA_DIR=/var/lib/hub ")
            && of_the_image.contains("CMD [\"hub-server\", \"health\"]")
    );
    // The version that the workspace is built with at least.
    let rust = file.split_once("FROM rust:").unwrap().1.split('-').next().unwrap();
    let number =
        |version: &str| version.split('.').map(|part| part.parse::<u32>().unwrap()).collect::<Vec<_>>();
    assert!(number(rust) >= number(env!("CARGO_PKG_RUST_VERSION")), "{rust}");
}

#[test]
fn compose_files_fit_their_schema() {
    let Some(mut dclint) = installed::dclint() else { return };
    // An image of one's own is built and named; a proxy listens everywhere.
    for rule in ["no-build-and-image", "no-unbound-port-interfaces"] {
        dclint.args(["--disable-rule", rule]);
    }
    succeed(dclint.args(["--quiet", "--color=false"]).args(COMPOSE.map(|name| folder().join(name))));
}

fn text<'v>(value: &'v Value, path: &[&str]) -> &'v str {
    let found = path.iter().fold(value, |value, key| &value[*key]);
    found.as_str().unwrap_or_else(|| panic!("{path:?}: {found:?}"))
}

#[test]
fn one_service_one_volume_and_one_line_to_write() {
    let file = read("docker/compose.yaml");
    let compose = read_yaml("docker/compose.yaml");
    assert_eq!(compose["services"].as_mapping().unwrap().len(), 1);
    assert_eq!(compose["volumes"].as_mapping().unwrap().len(), 1);
    assert_eq!(compose["services"]["hub"]["volumes"][0], "hub-data:/var/lib/hub");
    let required: Vec<&str> =
        file.split("${").skip(1).filter_map(|rest| rest.split_once(":?").map(|(name, _)| name)).collect();
    assert_eq!(required, ["HUB_PUBLIC_URL"]);
    assert_eq!(file.matches("${").count(), 1, "nothing else is read from outside");
}

#[test]
fn hubs_have_time_to_stop_believe_their_network_alone_and_may_nothing_else() {
    for (name, hubs) in
        [("docker/compose.yaml", &["hub"][..]), ("two-nodes/compose.yaml", &["hub-1", "hub-2"])]
    {
        let compose = read_yaml(name);
        let subnet = text(&compose["networks"]["default"]["ipam"]["config"][0], &["subnet"]);
        for hub in hubs {
            let hub = &compose["services"][*hub];
            assert_eq!(text(hub, &["environment", "HUB_TRUSTED_PROXIES"]), subnet);
            assert_eq!(text(hub, &["stop_grace_period"]), "40s");
            assert_eq!(hub["read_only"], Value::Bool(true));
            assert_eq!(hub["cap_drop"][0], "ALL");
            assert_eq!(hub["security_opt"][0], "no-new-privileges:true");
            let ports = hub.get("ports").and_then(Value::as_sequence).cloned().unwrap_or_default();
            assert!(ports.iter().all(|port| port.as_str().unwrap().starts_with("127.0.0.1:")), "{ports:?}");
        }
    }
    let nodes = read_yaml("two-nodes/compose.yaml");
    for name in ["hub-1", "hub-2"] {
        assert_eq!(text(&nodes["services"][name], &["environment", "HUB_NODE_NAME"]), name);
    }
}

#[test]
fn files_mounted_by_compose_exist() {
    for name in COMPOSE {
        let path = folder().join(name);
        let compose = read_yaml(name);
        let own = compose["volumes"].as_mapping().cloned().unwrap_or_default();
        for (service, settings) in compose["services"].as_mapping().unwrap() {
            for volume in settings["volumes"].as_sequence().into_iter().flatten() {
                let from = volume.as_str().unwrap().split(':').next().unwrap();
                let of_the_base = name != COMPOSE[0] && from == "hub-data";
                let there = from.starts_with("./") && path.with_file_name(from).exists();
                assert!(there || of_the_base || own.contains_key(from), "{name}: {service:?}: {from}");
            }
            if let Some(build) = settings.get("build") {
                let context = path.parent().unwrap().join(text(build, &["context"]));
                assert!(
                    context.join("Cargo.lock").exists()
                        && context.join(text(build, &["dockerfile"])).exists()
                );
            }
        }
    }
}

#[test]
fn caddy_accepts_its_files() {
    for name in ["docker/Caddyfile", "two-nodes/Caddyfile"] {
        let Some(mut caddy) = installed::caddy() else { return };
        // It keeps certificates and its last configuration under there.
        let home = tempfile::tempdir().unwrap();
        caddy.env("HOME", home.path()).env("HUB_PUBLIC_URL", "https://hub.example");
        let file = folder().join(name);
        let told = succeed(caddy.args(["validate", "--adapter", "caddyfile", "--config"]).arg(&file));
        assert!(
            told.contains("Valid configuration") && !told.contains("\"level\":\"warn\""),
            "{name}: {told}"
        );
    }
}
