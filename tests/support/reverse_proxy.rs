//! Reverse proxies of other authors before a hub, configured as people do: the hub lies below a path, the proxy asks for a
//! password of its own and passes it on, names another host, forbids the referrer and writes ports into
//! `X-Forwarded-For`. Programs have no use for a second password: what they call is open.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use rcgen::{CertificateParams, KeyPair};
use tokio::net::TcpStream;

use super::{http::until, process::Process};
use crate::clients::installed;

/// User and password of the proxy.
pub const BASIC: &str = "team:the proxy's own";

/// The program that is the proxy.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// The nginx of Debian's packages; for http.
    Nginx,
    /// Caddy, as PyPI has it; for http and https.
    Caddy,
}

/// A proxy that runs until this is dropped.
#[derive(Debug)]
pub struct ReverseProxy {
    _process: Process,
    _folder: tempfile::TempDir,
}

impl ReverseProxy {
    /// Serves the hub of a port at `url`, which has a path; with a certificate of its own if that is https. `None` where the
    /// program is missing.
    pub async fn start(kind: Kind, url: &str, hub: u16) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let (scheme, rest) = url.split_once("://").unwrap();
        let (host, path) = rest.split_once('/').unwrap();
        if scheme == "https" {
            let pair = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            let certificate = params.self_signed(&pair).unwrap().pem();
            std::fs::write(folder.path().join("certificate.pem"), certificate).unwrap();
            std::fs::write(folder.path().join("key.pem"), pair.serialize_pem()).unwrap();
        }
        let process = match kind {
            Kind::Nginx => {
                assert_eq!(scheme, "http", "only Caddy ends TLS");
                nginx(folder.path(), host, path, hub)?
            }
            Kind::Caddy => caddy(folder.path(), scheme, host, path, hub)?,
        };
        let port: u16 = port_of(host).parse().unwrap();
        until("the proxy", async || TcpStream::connect(("127.0.0.1", port)).await.ok()).await;
        Some(Self { _process: process, _folder: folder })
    }
}

fn port_of(host: &str) -> &str {
    host.rsplit_once(':').expect("a port").1
}

/// Of the paths below the hub, those that programs call.
const OPEN: [&str; 2] = ["ilink/", "api/v1/"];

fn nginx(folder: &Path, host: &str, path: &str, hub: u16) -> Option<Process> {
    let program = installed::nginx()?;
    let place = folder.display();
    let (user, password) = BASIC.split_once(':').unwrap();
    std::fs::write(folder.join("passwords"), format!("{user}:{{PLAIN}}{password}\n")).unwrap();
    let port = port_of(host);
    let location = |below: &str, auth: &str| {
        format!(
            "location /{path}/{below} {{ auth_basic {auth}; proxy_pass http://127.0.0.1:{hub}/{below}; }}\n"
        )
    };
    let open: String = OPEN.iter().map(|below| location(below, "off")).collect();
    let all = location("", "\"the team\"");
    let configuration = format!(
        r#"user root;
daemon off;
worker_processes 1;
pid {place}/pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {place}/body;
    proxy_temp_path {place}/proxy;
    fastcgi_temp_path {place}/fastcgi;
    uwsgi_temp_path {place}/uwsgi;
    scgi_temp_path {place}/scgi;
    map $http_upgrade $connection_upgrade {{ default upgrade; "" ""; }}
    server {{
        listen 127.0.0.1:{port};
        auth_basic_user_file {place}/passwords;
        client_max_body_size 64m;
        proxy_http_version 1.1;
        proxy_buffering off;
        proxy_read_timeout 120s;
        proxy_set_header Host backend.internal:8080;
        proxy_set_header X-Forwarded-For $remote_addr:$remote_port;
        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection $connection_upgrade;
        add_header Referrer-Policy no-referrer always;
        {open}
        {all}
    }}
}}
"#
    );
    let file = folder.join("nginx.conf");
    std::fs::write(&file, configuration).unwrap();
    let arguments = ["-p", &place.to_string(), "-e", "stderr", "-c", &file.display().to_string()];
    Some(Process::start(&program, &arguments, &[]))
}

fn caddy(folder: &Path, scheme: &str, host: &str, path: &str, hub: u16) -> Option<Process> {
    let program = PathBuf::from(installed::caddy()?.get_program());
    let place = folder.display().to_string();
    let (user, password) = BASIC.split_once(':').unwrap();
    let hashed =
        Command::new(&program).args(["hash-password", "--plaintext", password]).env("HOME", &place).output();
    let hashed = String::from_utf8(hashed.unwrap().stdout).unwrap();
    let tls = if scheme == "https" {
        format!("tls {place}/certificate.pem {place}/key.pem")
    } else {
        String::new()
    };
    let open = OPEN.map(|below| format!("/{below}*")).join(" ");
    // Whatever the client calls the host, as nginx does; a certificate needs its name.
    let site =
        if scheme == "https" { format!("https://{host}") } else { format!("http://:{}", port_of(host)) };
    let configuration = format!(
        r"{{
    admin off
    auto_https disable_redirects
    skip_install_trust
}}
{site} {{
    bind 127.0.0.1
    {tls}
    redir /{path} /{path}/
    handle_path /{path}/* {{
        @people not path {open}
        basic_auth @people {{
            {user} {}
        }}
        header Referrer-Policy no-referrer
        reverse_proxy 127.0.0.1:{hub} {{
            header_up Host backend.internal:8080
            header_up X-Forwarded-For {{remote_host}}:{{remote_port}}
        }}
    }}
}}
",
        hashed.trim()
    );
    let file = folder.join("Caddyfile").display().to_string();
    std::fs::write(&file, configuration).unwrap();
    let arguments = ["run", "--adapter", "caddyfile", "--config", &file];
    Some(Process::start(&program, &arguments, &[("HOME", &place)]))
}
