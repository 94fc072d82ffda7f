//! Alerts, and the names in them and on the board.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::Duration,
};

use bytes::Bytes;
use hub_core::egress::{Call, Egress, EgressConfig};
use reqwest::{
    Method,
    header::{AUTHORIZATION, HeaderMap},
};
use serde_norway::Value;

use super::{board, folder, read, read_yaml, succeed, tool};
use crate::support::hub_process::{HubProcess, NetworkProcess};

const ALERTS: &str = "monitoring/alerts.yaml";

fn alerts() -> Vec<Value> {
    let rules = read_yaml(ALERTS);
    let groups = rules["groups"].as_sequence().unwrap().iter();
    groups.flat_map(|group| group["rules"].as_sequence().unwrap().clone()).collect()
}

#[test]
fn prometheus_accepts_the_alerts_and_its_configuration() {
    for (what, file) in [("rules", ALERTS), ("config", "monitoring/prometheus.yml")] {
        let Some(mut promtool) = tool("promtool") else { return };
        succeed(promtool.args(["check", what]).arg(folder().join(file)));
    }
}

#[test]
fn alerts_fire_when_they_should_and_only_then() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/alerts_test.yaml");
    let text = std::fs::read_to_string(&cases).unwrap();
    for alert in alerts() {
        let name = alert["alert"].as_str().unwrap();
        assert!(text.contains(&format!("{{alertname=\"{name}\"}}")), "nothing tries {name}");
    }
    let Some(mut promtool) = tool("promtool") else { return };
    succeed(promtool.args(["test", "rules"]).arg(cases));
}

#[test]
fn every_alert_says_how_urgent_it_is_and_what_to_do() {
    for alert in alerts() {
        let name = alert["alert"].as_str().unwrap();
        assert!(["critical", "warning"].contains(&alert["labels"]["severity"].as_str().unwrap()), "{name}");
        let said =
            |key: &str| alert["annotations"][key].as_str().unwrap_or_else(|| panic!("{name} has no {key}"));
        assert!(!said("summary").ends_with('.') && said("description").ends_with('.'), "{name}");
    }
}

/// The series of a page of metrics: names as Prometheus stores them, with the values of each label.
#[derive(Debug, Default)]
struct Exported(BTreeMap<String, BTreeMap<String, BTreeSet<String>>>);

impl Exported {
    fn of(page: &str) -> Self {
        let mut exported = Self::default();
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let series = line.rsplit_once(' ').unwrap().0;
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let known = exported.0.entry(name.to_owned()).or_default();
            for (label, value) in matchers(labels) {
                known.entry(label.to_owned()).or_default().insert(value.to_owned());
            }
        }
        exported
    }

    /// Checks every series that an expression names.
    fn check(&self, expression: &str) {
        for (at, _) in expression.match_indices("hub_") {
            let rest = &expression[at..];
            let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(rest.len());
            let (name, rest) = rest.split_at(end);
            let known = self.0.get(name).unwrap_or_else(|| panic!("{name} is not exported: {expression}"));
            let labels =
                rest.strip_prefix('{').and_then(|rest| rest.split_once('}')).map_or("", |(labels, _)| labels);
            for (label, value) in matchers(labels) {
                // Those that Prometheus adds, and those whose values are not a fixed set.
                if ["job", "instance"].contains(&label) || value.contains(['.', '*']) {
                    continue;
                }
                let values = known.get(label).unwrap_or_else(|| panic!("{name} has no label {label}"));
                for value in value.split('|') {
                    assert!(values.contains(value), "{name} never has {label}={value}: {values:?}");
                }
            }
        }
    }
}

/// The labels of a series, or the matchers of a selector, with their values.
fn matchers(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("\",").filter_map(|part| {
        let (label, value) = part
            .split_once("=\"")
            .or_else(|| part.split_once("=~\""))
            .or_else(|| part.split_once("!=\""))
            .or_else(|| part.split_once("!~\""))?;
        Some((label.trim().trim_end_matches('!'), value.trim_end_matches('}').trim_end_matches('"')))
    })
}

/// The page, as Prometheus gets it.
pub(super) async fn page(hub: &HubProcess, token: &str) -> String {
    let address = hub.url.trim_start_matches("http://");
    let config = EgressConfig { allow: vec![address.parse().unwrap()], ..EgressConfig::default() };
    let egress = Egress::new(config).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
    let call = Call {
        method: Method::GET,
        url: egress.check_url(&format!("{}/metrics", hub.url)).unwrap(),
        headers,
        body: Bytes::new(),
        deadline: Duration::from_secs(30),
        max_answer: 1 << 20,
    };
    String::from_utf8(egress.send(call).await.unwrap().body.to_vec()).unwrap()
}

#[tokio::test]
async fn every_name_in_alerts_and_board_is_exported() {
    let (folder, token) = (tempfile::tempdir().unwrap(), "a-token-for-prometheus");
    let network = NetworkProcess::start().await;
    // Which answers a request of this test before the page is made.
    let hub = HubProcess::start(folder.path(), &network, &[("HUB_METRICS_TOKEN", token)]).await;
    let exported = Exported::of(&page(&hub, token).await);
    let alerts = alerts();
    let expressions: Vec<&str> = alerts.iter().map(|alert| alert["expr"].as_str().unwrap()).collect();
    assert!(expressions.len() > 20);
    for expression in expressions.into_iter().map(str::to_owned).chain(board::expressions()) {
        exported.check(&expression);
    }
    assert!(read("monitoring/prometheus.yml").contains("job_name: hub\n"), "the alerts go by it");
}
