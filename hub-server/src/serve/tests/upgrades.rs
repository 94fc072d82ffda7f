//! WebSockets through the listeners.

use futures_util::{SinkExt, StreamExt};
use poem::{
    get, handler,
    web::websocket::{Message, WebSocket},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message as Sent, protocol::Role},
};

use super::*;
use crate::serve::websocket;

#[handler]
fn echo(socket: WebSocket) -> impl poem::IntoResponse + use<> {
    socket.config(websocket::config()).on_upgrade(|mut socket| async move {
        while let Some(Ok(message)) = socket.next().await {
            if let Message::Text(text) = message {
                let _ = socket.send(Message::Text(text)).await;
            }
        }
    })
}

const UPGRADE: &str = "GET /ws HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

#[tokio::test]
async fn a_websocket_keeps_its_place_and_has_no_deadlines_of_http() {
    let route = poem::Route::new().at("/ws", get(echo)).map_to_response();
    let stage = Stage::open(route, ServeLimits::default()).await;
    let mut client = stage.connect().await;
    client.say(UPGRADE).await;
    client.read_until("HTTP/1.1 101 ").await;
    let mut socket = WebSocketStream::from_raw_socket(client.0, Role::Client, None).await;
    let long = "x".repeat(websocket::MAX_FRAME - 1);
    for text in ["hello", long.as_str()] {
        stage.clock.advance(Duration::from_secs(600));
        socket.send(Sent::text(text)).await.unwrap();
        let answer = tokio::time::timeout(TEST_TIMEOUT, socket.next()).await.unwrap();
        assert!(answer.unwrap().unwrap().to_text().unwrap() == text);
    }
    assert_eq!(stage.server.stats().open(), 1, "an upgraded connection counts");
    // A frame over the cap ends it.
    let _ = socket.send(Sent::text("x".repeat(websocket::MAX_FRAME + 1))).await;
    until(|| stage.server.stats().open() == 0).await;
}

#[tokio::test]
async fn an_upgrade_that_is_refused_ends_the_connection() {
    let stage = Stage::ok().await;
    let mut client = stage.connect().await;
    client.say(&format!("{UPGRADE}{GET}")).await;
    let answer = client.read_to_end().await;
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
}
