//! Acceptance of app sockets, and the reasons for which the hub closes them.

use std::time::Duration;

use hub_core::{
    accounts::UserStatus,
    admin::UserPatch,
    apps::{AppEventState, InstallationPatch},
    events::Event,
};
use reqwest::Method;
use serde_json::json;

use super::{
    app_scene::{ALL, APP_WS, Scene, WS, make},
    client::open,
};
use crate::support::http::Caller;

#[tokio::test]
async fn only_a_right_token_or_secret_opens_and_the_refusal_comes_before_the_switch() {
    let scene = Scene::new(&[], &ALL).await;
    let connect = async |target: &str, lines: &[&str]| open(scene.stage.address, target, lines).await;
    let (token, secret, app) = (&scene.token, scene.secret.expose(), scene.app.id);
    let (other, other_secret) = make(&scene.stage, "Other", &[], &ALL).await;
    let (other_secret, other) = (other_secret.expose(), other.id);
    let (bearer, secret_bearer) =
        (format!("Authorization: Bearer {token}"), format!("Authorization: Bearer {secret}"));
    for (target, lines) in [
        (format!("{WS}?token={token}"), vec![]),
        (WS.to_owned(), vec![&*bearer]),
        (format!("{APP_WS}?app_id={app}&secret={secret}"), vec![]),
        (format!("{APP_WS}?app_id={app}"), vec![&*secret_bearer]),
        (format!("{APP_WS}?app_id={other}&secret={other_secret}"), vec![]),
    ] {
        assert!(connect(&target, &lines).await.is_ok(), "{target}");
    }
    let key = format!("Authorization: Bearer {}", scene.stage.key);
    for (target, lines, code) in [
        (WS.to_owned(), vec![], "UNAUTHORIZED"),
        (format!("{WS}?token="), vec![], "UNAUTHORIZED"),
        (format!("{WS}?token=huba_made_up"), vec![], "INVALID_TOKEN"),
        (format!("{WS}?token={secret}"), vec![], "INVALID_TOKEN"),
        // What is in the header wins, also when it is bad.
        (format!("{WS}?token={token}"), vec![&*key], "INVALID_TOKEN"),
        (APP_WS.to_owned(), vec![], "UNAUTHORIZED"),
        (format!("{APP_WS}?app_id={app}"), vec![], "UNAUTHORIZED"),
        (format!("{APP_WS}?secret={secret}"), vec![], "INVALID_TOKEN"),
        (format!("{APP_WS}?app_id={app}&secret=made_up"), vec![], "INVALID_TOKEN"),
        (format!("{APP_WS}?app_id={app}&secret={token}"), vec![], "INVALID_TOKEN"),
        (format!("{APP_WS}?app_id={app}&secret={other_secret}"), vec![], "INVALID_TOKEN"),
        (format!("{APP_WS}?app_id={other}&secret={secret}"), vec![], "INVALID_TOKEN"),
        (format!("{APP_WS}?app_id=app_01BX5ZZKBKACTAV9WEVGEMMVRZ&secret={secret}"), vec![], "INVALID_TOKEN"),
        (format!("{APP_WS}?app_id={}&secret={secret}", scene.installation.id), vec![], "INVALID_TOKEN"),
        (format!("{APP_WS}?app_id={app}"), vec![&*bearer], "INVALID_TOKEN"),
    ] {
        let refused = connect(&target, &lines).await.err().unwrap_or_else(|| panic!("{target} got in"));
        assert_eq!((refused.status, &refused.json["error"]["code"]), (401, &json!(code)), "{target}");
        assert_eq!((&refused.json["success"], &refused.json["ok"]), (&json!(false), &json!(false)));
    }
    let caller = Caller::stranger(&format!("http://{}", scene.stage.address));
    for path in [format!("{WS}?token={token}"), format!("{APP_WS}?app_id={app}&secret={secret}")] {
        let (status, answer, _) = caller.call(Method::GET, &path, None).await;
        assert_eq!((status.as_u16(), &answer["error"]["code"]), (400, &json!("INVALID_PARAMS")), "{path}");
    }
    scene.stop().await;
}

#[tokio::test]
async fn too_many_sockets_are_refused() {
    let scene = Scene::new(&[], &ALL).await;
    let mut open = Vec::new();
    for _ in 0..hub_core::apps::sockets::MAX_SOCKETS_PER_SCOPE {
        open.push((scene.connect("").await, scene.connect_app("").await));
    }
    for refused in [scene.try_connect("").await, scene.try_connect_app("").await] {
        let refused = refused.err().expect("no sixth");
        assert_eq!((refused.status, &refused.json["error"]["code"]), (429, &json!("RATE_LIMITED")));
    }
    open.pop();
    let context = scene.stage.world.hub.context();
    scene
        .stage
        .world
        .until("a place is free", async || (context.node.socket_slots.taken() == 8).then_some(()))
        .await;
    open.push((scene.connect("").await, scene.connect_app("").await));
    drop(open);
    scene
        .stage
        .world
        .until("all are free", async || (context.node.socket_slots.taken() == 0).then_some(()))
        .await;
    assert_eq!(context.node.app_sockets.count(), 0);
    scene.stop().await;
}

#[tokio::test]
async fn a_replaced_token_ends_its_sockets_at_once_or_after_its_grace() {
    let mut scene = Scene::new(&["message.text"], &ALL).await;
    let mut client = scene.connect("").await;
    let (bot, app) = (scene.stage.bot.id, scene.app.id);
    let hub = scene.stage.world.hub.clone();
    let owner = scene.stage.world.owner;
    let renew = async |grace| hub.apps().regenerate_token(&owner, bot, app, grace, None).await.unwrap();
    let second = renew(None).await.app_token;
    assert_eq!(scene.closed(&mut client).await, 4401);
    assert_eq!(scene.try_connect("").await.err().unwrap().json["error"]["code"], "INVALID_TOKEN");
    scene.token = second.expose().to_owned();
    let mut client = scene.connect("").await;
    let third = renew(Some(1)).await.app_token;
    scene.stage.say("within its grace");
    assert_eq!(scene.content(&mut client).await, "within its grace");
    // A client that is silent for an hour would be disconnected.
    drop(client);
    scene.stage.clock().advance(Duration::from_secs(60 * 60 - 5));
    let mut client = scene.connect("").await;
    assert_eq!(scene.closed(&mut client).await, 4401);
    scene.token = third.expose().to_owned();
    scene.connect("").await;
    scene.stop().await;
}

#[tokio::test]
async fn removing_the_app_closes_its_sockets() {
    let mut scene = Scene::new(&["message.text", "app.uninstalled"], &ALL).await;
    let (bot, app) = (scene.stage.bot.id, scene.app.id);
    let (hub, owner) = (scene.stage.world.hub.clone(), scene.stage.world.owner);
    let switch = |on| InstallationPatch { enabled: Some(on), ..InstallationPatch::default() };

    let mut client = scene.connect("").await;
    let mut whole = scene.connect_app("").await;
    hub.apps().change_installation(&owner, bot, app, switch(false)).await.unwrap();
    assert_eq!(scene.closed(&mut client).await, 4403);
    let refused = scene.try_connect("").await.err().unwrap();
    assert_eq!((refused.status, &refused.json["error"]["code"]), (403, &json!("FORBIDDEN")));
    hub.apps().change_installation(&owner, bot, app, switch(true)).await.unwrap();

    let mut client = scene.connect("").await;
    scene.stage.say("one");
    scene.content(&mut client).await;
    hub.apps().uninstall(&owner, bot, app).await.unwrap();
    let (mut rest, code) = scene.while_time_passes(client.rest()).await;
    assert_eq!(code, 4401);
    // The event goes to the installation's own socket if the hub sends it before the close, else to the app's socket.
    let told = match rest.pop() {
        Some(told) => told,
        None => scene.event(&mut whole).await,
    };
    assert_eq!(told["event"]["type"], "app.uninstalled");
    let mut news = hub.events();
    scene.stage.say("after it was taken off");
    // The hub has it before the app is there again.
    let comes = async { while !matches!(news.recv().await.unwrap(), Event::Message { .. }) {} };
    scene.while_time_passes(comes).await;
    let (installation, token) = super::app_scene::install(&scene.stage, bot, app).await;
    (scene.installation, scene.token) = (installation, token);
    scene.stage.say("and is there again");
    assert_eq!(scene.content(&mut whole).await, "and is there again");

    let mut client = scene.connect("").await;
    let to = scene.stage.bot.account.owner_user_id.clone();
    hub.apps().delete(&owner, app).await.unwrap();
    // In the middle of a call.
    client.say(&json!({ "type": "send", "req_id": 1, "to": to, "content": "too late" })).await;
    assert_eq!(scene.closed(&mut client).await, 4401);
    assert_eq!(scene.closed(&mut whole).await, 4401);
    for refused in [scene.try_connect("").await, scene.try_connect_app("").await] {
        assert_eq!(refused.err().unwrap().json["error"]["code"], "INVALID_TOKEN");
    }
    assert!(scene.stage.world.sent(&scene.stage.bot).is_empty());
    scene.stop().await;
}

#[tokio::test]
async fn the_sockets_of_a_disabled_users_apps_are_closed() {
    let scene = Scene::new(&["message.text"], &ALL).await;
    let (hub, owner) = (scene.stage.world.hub.clone(), scene.stage.world.owner);
    // Someone has to be left to administer.
    let eve = super::app_scene::user(&scene.stage, "eve").await;
    let admin = UserPatch { role: Some(hub_core::access::Role::Admin), ..UserPatch::default() };
    let eve_id = eve.user().unwrap().user_id;
    hub.admin().update_user(&owner, eve_id, admin).await.unwrap();
    let (mut client, mut whole) = (scene.connect("").await, scene.connect_app("").await);
    let status = |status| UserPatch { status: Some(status), ..UserPatch::default() };
    let id = owner.user().unwrap().user_id;
    hub.admin()
        .update_user(&hub_core::access::Actor::Operator, id, status(UserStatus::Disabled))
        .await
        .unwrap();
    assert_eq!(scene.closed(&mut client).await, 4403);
    assert_eq!(scene.closed(&mut whole).await, 4403);
    for refused in [scene.try_connect("").await, scene.try_connect_app("").await] {
        let refused = refused.err().unwrap();
        assert_eq!((refused.status, &refused.json["error"]["code"]), (403, &json!("FORBIDDEN")));
    }
    hub.admin()
        .update_user(&hub_core::access::Actor::Operator, id, status(UserStatus::Active))
        .await
        .unwrap();
    scene.connect("").await;
    scene.stop().await;
}

#[tokio::test]
async fn a_drain_closes_and_nothing_is_lost() {
    let mut scene = Scene::new(&["message.text"], &ALL).await;
    let (mut client, mut whole) = (scene.connect("").await, scene.connect_app("").await);
    scene.stage.settings.draining.cancel();
    assert_eq!(scene.closed(&mut client).await, 1001);
    assert_eq!(scene.closed(&mut whole).await, 1001);
    scene.stage.say("meanwhile");
    scene.logged(AppEventState::Pending, 1).await;
    scene.stage.restart().await;
    let mut client = scene.connect("").await;
    assert_eq!(scene.content(&mut client).await, "meanwhile");
    scene.stop().await;
}
