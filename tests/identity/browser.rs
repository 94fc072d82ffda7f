//! The sign-in page in Debian's Chromium, driven by Playwright, with virtual authenticators.

use std::process::Stdio;

use hub_core::{
    access::Actor,
    accounts::{ClientInfo, NewUser},
    egress::EgressConfig,
};
use tokio::process::Command;

use super::{
    provider::Issuer,
    stage::{Fixture, chromium, npm, script},
};

#[tokio::test]
async fn people_sign_in_with_a_real_browser() {
    let (Some(chromium), Some(modules)) = (chromium(), npm("playwright-core-1.52.0")) else { return };
    let issuer = Issuer::start().await;
    let egress = issuer.as_ref().map_or_else(EgressConfig::default, Issuer::egress);
    let fixture = Fixture::open(egress, |config| {
        config.providers = issuer.iter().map(Issuer::provider).collect();
    })
    .await;
    let bob = NewUser {
        username: "bob".to_owned(),
        password: "correct horse battery".into(),
        display_name: None,
        email: None,
    };
    let bob = fixture.hub.accounts().register(bob, None, &ClientInfo::default()).await.unwrap();
    let link = fixture.hub.admin().create_reset_link(&Actor::Operator, bob.me.user.id, None).await.unwrap();
    let pictures = std::env::var_os("HUB_TEST_PICTURES").unwrap_or_default();
    let told = Command::new("node")
        .arg(script("browser.mjs"))
        .env("MODULES", modules)
        .env("CHROMIUM", chromium)
        .env("HUB_URL", &fixture.url)
        .env("PICTURES", pictures)
        .env("RESET_LINK", link.url.expose())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
    assert!(told.status.success(), "{out}\n{err}");
    assert!(out.trim_end().ends_with("all of it"), "{out}\n{err}");
    fixture.close().await;
}
