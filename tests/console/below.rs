//! The hub below a path: `http(s)://localhost:PORT/hub/` is a proxy that strips `/hub` and names another host.

use rcgen::{CertificateParams, KeyPair};

use super::{Demo, free_port, run};

/// Tells stories to a hub that is reached through a proxy, with TLS or without, and returns the link for its first account.
async fn through_a_proxy(scheme: &str, stories: &[&str]) -> String {
    let (port, hub) = (free_port(), free_port());
    let url = format!("{scheme}://localhost:{port}/hub");
    let settings = [("HUB_PUBLIC_URL", url.as_str()), ("HUB_NETWORK", "sim")];
    let mut demo = Demo::start_with(&format!("127.0.0.1:{hub}"), &settings).await;
    demo.url = url.clone();
    let (mut key, mut certificate) = (String::new(), String::new());
    if scheme == "https" {
        let pair = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        certificate = params.self_signed(&pair).unwrap().pem();
        key = pair.serialize_pem();
    }
    for story in stories {
        let more = [
            ("STORY", (*story).to_owned()),
            ("KEY", key.clone()),
            ("CERTIFICATE", certificate.clone()),
            ("TARGET_PORT", hub.to_string()),
        ];
        run("below.mjs", &demo, &more).await;
    }
    demo.setup_link.replace(&url, "")
}

#[tokio::test]
async fn everything_works_below_a_path() {
    through_a_proxy("http", &["newcomer.mjs", "links.mjs"]).await;
}

#[tokio::test]
async fn everything_works_below_a_path_of_a_proxy_that_ends_tls() {
    let link = through_a_proxy("https", &["links.mjs"]).await;
    assert!(link.starts_with("/login#setup="), "{link}");
}
