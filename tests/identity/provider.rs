//! A real OpenID Connect issuer on loopback: oauth2-mock-server from npm.

use std::process::Stdio;

use hub_core::{
    accounts::Provider,
    egress::{AllowRule, EgressConfig},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};
use url::Url;

use super::stage::{Fixture, npm, script};
use crate::support::http::Caller;

/// The issuer's process.
pub struct Issuer {
    pub url: String,
    _process: Child,
}

impl Issuer {
    /// Starts one; `None` where it is not installed.
    pub async fn start() -> Option<Self> {
        let modules = npm("oauth2-mock-server-7.2.1")?;
        let mut process = Command::new("node")
            .arg(script("issuer.mjs"))
            .env("MODULES", modules)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = lines.next_line().await.unwrap().expect("the issuer says where it is");
        Some(Self { url, _process: process })
    }

    /// Egress configuration that lets a hub reach the issuer.
    pub fn egress(&self) -> EgressConfig {
        let url: Url = self.url.parse().unwrap();
        let rule = AllowRule::HostPort(url.host_str().unwrap().to_owned(), url.port().unwrap());
        EgressConfig { allow: vec![rule], ..EgressConfig::default() }
    }

    /// The issuer as a hub's provider.
    pub fn provider(&self) -> Provider {
        Provider::openid("company", self.url.clone(), "hub", Some("shh".into()))
    }
}

#[expect(clippy::disallowed_methods, reason = "a browser, which follows nothing by itself")]
fn browser() -> reqwest::Client {
    // Absent only when another test was first, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let none = reqwest::redirect::Policy::none();
    reqwest::Client::builder().redirect(none).no_proxy().build().unwrap()
}

fn header(answer: &reqwest::Response, name: &str) -> String {
    answer.headers()[name].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_person_signs_in_at_a_real_issuer_and_is_the_same_the_next_time() {
    let Some(issuer) = Issuer::start().await else { return };
    let fixture = Fixture::open(issuer.egress(), |config| config.providers = vec![issuer.provider()]).await;
    let browser = browser();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let away = browser.get(format!("{}/api/auth/oauth/company?redirect=/docs", fixture.url));
        let away = away.send().await.unwrap();
        let flow = header(&away, "set-cookie");
        let there = header(&away, "location");
        assert!(there.starts_with(&issuer.url) && there.contains("nonce=") && there.contains("scope=openid"));
        let back = header(&browser.get(there).send().await.unwrap(), "location");
        assert!(back.starts_with(&format!("{}/api/auth/callback/company?", fixture.url)), "{back}");
        let flow = flow.split(';').next().unwrap();
        let entered = browser.get(&back).header("cookie", flow).send().await.unwrap();
        assert_eq!((entered.status().as_u16(), header(&entered, "location").as_str()), (303, "/docs"));
        let session = header(&entered, "set-cookie").split(';').next().unwrap().to_owned();
        let me = Caller::stranger(&fixture.url).with_cookie(session).get("/api/auth/me").await;
        assert_eq!(me["oauth_accounts"][0], "company");
        seen.push(me["id"].to_string());
        let twice = browser.get(&back).header("cookie", flow).send().await.unwrap();
        assert_eq!(twice.status().as_u16(), 401);
    }
    assert_eq!(seen[0], seen[1]);
    fixture.close().await;
}

#[tokio::test]
async fn a_real_issuer_with_a_wrong_nonce_audience_or_key_is_rejected() {
    let Some(issuer) = Issuer::start().await else { return };
    let fixture = Fixture::open(issuer.egress(), |config| config.providers = vec![issuer.provider()]).await;
    let browser = browser();
    for lie in ["nonce", "aud", "iss", "exp", "sub", "none"] {
        browser.get(format!("{}/lie?about={lie}", issuer.url)).send().await.unwrap();
        let away = browser.get(format!("{}/api/auth/oauth/company", fixture.url)).send().await.unwrap();
        let flow = header(&away, "set-cookie");
        let back = browser.get(header(&away, "location")).send().await.unwrap();
        let entered =
            browser.get(header(&back, "location")).header("cookie", flow.split(';').next().unwrap());
        let entered = entered.send().await.unwrap();
        let to = header(&entered, "location");
        if lie == "none" {
            assert_eq!(to, "/", "an honest answer after all the lies");
        } else {
            assert_eq!(to, "/login?error=provider_failed", "a lie about {lie}");
            assert!(entered.headers().get("set-cookie").is_none());
        }
    }
    fixture.close().await;
}

#[tokio::test]
async fn a_person_whose_issuer_is_away_is_back_on_the_sign_in_page() {
    let Some(issuer) = Issuer::start().await else { return };
    let fixture = Fixture::open(issuer.egress(), |config| config.providers = vec![issuer.provider()]).await;
    let browser = browser();
    drop(issuer);
    let start = format!("{}/api/auth/oauth/company?redirect=%2Fdocs", fixture.url);
    let page = browser.get(&start).header("accept", "text/html,*/*;q=0.8").send().await.unwrap();
    assert_eq!(page.status().as_u16(), 303);
    let to = header(&page, "location");
    assert!(to.starts_with("/login?") && to.contains("error=") && to.contains("redirect="), "{to}");
    let shown = browser.get(format!("{}{to}", fixture.url)).send().await.unwrap();
    assert_eq!(shown.status().as_u16(), 200);
    assert!(shown.text().await.unwrap().contains("role=\"alert\""));
    // A program gets the error in the envelope.
    let answer = browser.get(&start).header("accept", "application/json").send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 502);
    assert!(answer.text().await.unwrap().contains("UPSTREAM_ERROR"));
    fixture.close().await;
}
