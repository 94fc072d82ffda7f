//! The HTTP API and its pages, served by a program that embeds the hub: one endpoint among its own.
//! Run it: `cargo run -p hub-examples --example 07_serve_the_api`

use std::error::Error;

use hub_core::{Hub, presets::Dev};
use hub_server::{app, settings::Values};
use poem::{EndpointExt, Route, Server, get, handler, listener::TcpListener};

/// A page of this program's own.
#[handler]
fn hello() -> &'static str {
    "this is my program"
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let hub = Hub::open(Dev::in_folder(folder.path())).await?;
    hub.start().await?;

    let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let settings = Values::new(format!("http://localhost:{}", free.port()).parse()?);
    let routes =
        Route::new().at("/hello", get(hello)).nest_no_strip("/", app(hub.clone(), settings.into()).boxed());
    let serving = Server::new(TcpListener::bind(free)).run(routes);

    let body = r#"{"username":"ada","password":"correct horse"}"#;
    tokio::select! {
        stopped = serving => stopped?,
        answer = support::post(free, "/api/auth/register", body) => println!("{}", answer?),
    }
    hub.shutdown().await;
    Ok(())
}
