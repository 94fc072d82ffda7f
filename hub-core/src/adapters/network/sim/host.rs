//! Under which address the simulator is reached.

use http::{Request, header};

/// The host an in-process simulator is reached under.
pub const SIM_HOST: &str = "sim.local";

/// The address a request came in on, or the configured one.
pub(super) fn base_url<B>(request: &Request<B>, public_url: Option<&str>) -> String {
    if let Some(url) = public_url {
        return url.trim_end_matches('/').to_owned();
    }
    let uri = request.uri();
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = uri.authority().map(http::uri::Authority::as_str).or(host).unwrap_or(SIM_HOST);
    format!("{}://{host}", uri.scheme_str().unwrap_or("http"))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::StatusCode;
    use serde_json::{Value, json};

    use super::*;
    use crate::network::{
        server::MAX_API_BODY,
        sim::{SimConfig, testing::Rig},
    };

    #[tokio::test]
    async fn unknown_paths_and_methods_bad_json_and_large_bodies_have_their_status() {
        let rig = Rig::new(SimConfig::default());
        let bot = rig.login(None).await;
        let large = vec![b' '; MAX_API_BODY + 1];
        for (method, path, body, status) in [
            ("GET", "/ilink/bot/unknown", "".into(), 404),
            ("GET", "/", "".into(), 404),
            ("GET", "/ilink/bot/getupdates", "".into(), 404),
            ("PUT", "/c2c/upload?encrypted_query_param=x", "".into(), 404),
            ("POST", "/ilink/bot/getupdates", "{".into(), 400),
            ("POST", "/ilink/bot/getupdates", "[]".into(), 400),
            ("POST", "/ilink/bot/getupdates", "".into(), 400),
            ("POST", "/ilink/bot/get_bot_qrcode?bot_type=3", "x".into(), 400),
            ("POST", "/ilink/bot/get_bot_qrcode?bot_type=3", "".into(), 200),
            ("GET", "/ilink/bot/get_bot_qrcode?bot_type=3", "".into(), 200),
            ("POST", "/ilink/bot/sendmessage", Bytes::from(large), 413),
        ] {
            let response = rig.http(rig.request(method, path, &bot.token, body)).await.unwrap();
            assert_eq!(response.status().as_u16(), status, "{method} {path}");
        }
    }

    #[tokio::test]
    async fn urls_start_with_the_address_of_the_request_or_the_configured_one() {
        let rig = Rig::new(SimConfig::default());
        assert!(rig.new_qr(&[]).await.1.starts_with("http://sim.test:9801/q/"));
        let absolute = Request::post("http://sim.local/ilink/bot/get_bot_qrcode?bot_type=3");
        let response = rig.http(absolute.body(Bytes::new()).unwrap()).await.unwrap();
        assert!(String::from_utf8_lossy(response.body()).contains("http://sim.local/q/"));
        let public = Some("https://sim.example/".to_owned());
        let rig = Rig::new(SimConfig { public_url: public, ..SimConfig::default() });
        assert!(rig.new_qr(&[]).await.1.starts_with("https://sim.example/q/"));
    }

    #[tokio::test]
    async fn a_call_without_the_literal_or_a_valid_token_is_an_expired_session() {
        let rig = Rig::new(SimConfig::default());
        let bot = rig.login(None).await;
        let body = || Bytes::from_static(b"{\"base_info\":{}}");
        let request = |token: &str| rig.request("POST", "/ilink/bot/msg/notifystart", token, body());
        let mut no_literal = request(&bot.token);
        no_literal.headers_mut().remove("authorizationtype");
        let mut no_token = request(&bot.token);
        no_token.headers_mut().remove("authorization");
        for request in [no_literal, no_token, request("wrong")] {
            let response = rig.http(request).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(
                serde_json::from_slice::<Value>(response.body()).unwrap(),
                json!({"errcode": -14, "errmsg": "session timeout"})
            );
        }
        let response = rig.http(request(&bot.token)).await.unwrap();
        assert_eq!(response.body(), r#"{"ret":0}"#);
    }
}
