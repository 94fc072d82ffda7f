use poem::http::Method;
use serde_json::{Value, json};

use crate::testing::{App, Caller, Reply};

async fn put(caller: &Caller<'_>, path: &str, body: &Value) -> Reply {
    caller.send(Method::PUT, path, |request| request.body_json(body)).await
}

async fn delete(caller: &Caller<'_>, path: &str) -> Reply {
    caller.send(Method::DELETE, path, |request| request).await
}

async fn id(caller: &Caller<'_>) -> String {
    caller.get("/api/auth/me").await.data()["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn members_are_turned_away_whatever_they_name() {
    let app = App::new().await;
    let alice = app.user("alice").await;
    let bob = app.user("bob").await;
    let alice_id = id(&alice).await;
    let absent = "usr_01BX5ZZKBKACTAV9WEVGEMMVRZ";
    for user in [&*alice_id, absent, "usr_garbage"] {
        let path = format!("/api/admin/users/{user}");
        bob.get(&path).await.error(403, "FORBIDDEN");
        put(&bob, &path, &json!({ "role": "member" })).await.error(403, "FORBIDDEN");
        delete(&bob, &path).await.error(403, "FORBIDDEN");
        app.stranger().get(&path).await.error(401, "UNAUTHORIZED");
    }
    for path in ["/api/admin/users", "/api/admin/bots", "/api/admin/stats", "/api/admin/audit"] {
        bob.get(path).await.error(403, "FORBIDDEN");
        app.stranger().get(path).await.error(401, "UNAUTHORIZED");
        alice.get(path).await.data();
    }
    bob.post("/api/admin/invites", &json!({})).await.error(403, "FORBIDDEN");
    alice.get(&format!("/api/admin/users/{absent}")).await.error(404, "NOT_FOUND");
}

#[tokio::test]
async fn rights_end_with_the_next_request() {
    let app = App::new().await;
    let alice = app.user("alice").await;
    let bob = app.user("bob").await;
    let bob_path = format!("/api/admin/users/{}", id(&bob).await);
    let key = bob.post("/api/user/api-keys", &json!({ "name": "ci" })).await;
    let program = app.stranger().with("X-API-Key", key.data()["key"].as_str().unwrap());
    assert_eq!(put(&alice, &bob_path, &json!({ "role": "admin" })).await.data()["role"], "admin");
    bob.get("/api/admin/stats").await.data();
    program.get("/api/admin/stats").await.data();
    put(&alice, &bob_path, &json!({ "role": "member" })).await.data();
    bob.get("/api/admin/stats").await.error(403, "FORBIDDEN");
    program.get("/api/admin/stats").await.error(403, "FORBIDDEN");
    let off = put(&alice, &bob_path, &json!({ "status": "disabled" })).await;
    assert_eq!((&off.data()["status"], &off.data()["sessions"]), (&json!("disabled"), &json!(0)));
    bob.get("/api/auth/me").await.error(401, "UNAUTHORIZED");
    program.get("/api/auth/me").await.error(401, "INVALID_TOKEN");
    let login = json!({ "username": "bob", "password": crate::testing::PASSWORD });
    app.stranger().post("/api/auth/login", &login).await.error(401, "UNAUTHORIZED");
    put(&alice, &bob_path, &json!({ "status": "active" })).await.data();
    bob.get("/api/auth/me").await.error(401, "UNAUTHORIZED");
    program.get("/api/auth/me").await.data();
    app.stranger().post("/api/auth/login", &login).await.data();
}

#[tokio::test]
async fn the_last_admin_stays_one() {
    let app = App::new().await;
    let alice = app.user("alice").await;
    let own = format!("/api/admin/users/{}", id(&alice).await);
    put(&alice, &own, &json!({ "role": "member" })).await.error(409, "CONFLICT");
    put(&alice, &own, &json!({ "status": "disabled" })).await.error(409, "CONFLICT");
    delete(&alice, &own).await.error(409, "CONFLICT");
    assert_eq!(put(&alice, &own, &json!({ "display_name": "Al" })).await.data()["display_name"], "Al");
    for (body, field) in [
        (json!({ "role": "root" }), "role"),
        (json!({ "status": "gone" }), "status"),
        (json!({ "display_name": " " }), "display_name"),
        (json!({ "username": "ada" }), "username"),
        (json!({ "password": "x" }), "password"),
    ] {
        let reply = put(&alice, &own, &body).await;
        assert!(reply.error(400, "INVALID_PARAMS").to_string().contains(field), "{}", reply.json);
    }
}

#[tokio::test]
async fn an_admin_deletes_others_at_once_and_themselves_when_they_just_signed_in() {
    let app = App::new().await;
    let alice = app.user("alice").await;
    let bob = app.user("bob").await;
    let (alice_path, bob_path) =
        (format!("/api/admin/users/{}", id(&alice).await), format!("/api/admin/users/{}", id(&bob).await));
    put(&alice, &bob_path, &json!({ "role": "admin" })).await.data();
    let key = alice.post("/api/user/api-keys", &json!({ "name": "ci" })).await;
    let program = app.stranger().with("X-API-Key", key.data()["key"].as_str().unwrap());
    delete(&program, &alice_path).await.error(403, "FORBIDDEN");
    app.clock.advance(std::time::Duration::from_secs(300));
    delete(&alice, &alice_path).await.error(403, "FORBIDDEN");
    alice.get("/api/auth/me").await.data();
    delete(&alice, &bob_path).await.data();
    bob.get("/api/auth/me").await.error(401, "UNAUTHORIZED");
    alice.get(&bob_path).await.error(404, "NOT_FOUND");
    delete(&alice, &bob_path).await.error(404, "NOT_FOUND");
    let again = app.user("bob").await;
    put(&alice, &format!("/api/admin/users/{}", id(&again).await), &json!({ "role": "admin" })).await.data();
    let own = format!("/api/admin/users/{}", id(&again).await);
    delete(&again, &own).await.data();
    again.get("/api/auth/me").await.error(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn users_are_found_by_name_role_and_status() {
    let app = App::new().await;
    let alice = app.user("alice").await;
    app.user("bob").await;
    let bob = app.user("bobby").await;
    put(&alice, &format!("/api/admin/users/{}", id(&bob).await), &json!({ "status": "disabled" }))
        .await
        .data();
    let names = async |query: &str| {
        let reply = alice.get(&format!("/api/admin/users?{query}")).await;
        let items = reply.data()["items"].as_array().unwrap().clone();
        items.iter().map(|user| user["username"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("").await, ["bobby", "bob", "alice"]);
    assert_eq!(names("q=BOB").await, ["bobby", "bob"]);
    assert_eq!(names("q=BOB&status=active").await, ["bob"]);
    assert_eq!(names("role=admin").await, ["alice"]);
    alice.get("/api/admin/users?role=root").await.error(400, "INVALID_PARAMS");
    let first = alice.get("/api/admin/users?limit=2").await;
    let cursor = first.data()["next_cursor"].as_str().unwrap();
    assert_eq!(names(&format!("limit=2&cursor={cursor}")).await, ["alice"]);
    // A cursor belongs to its filter.
    alice.get(&format!("/api/admin/users?q=b&cursor={cursor}")).await.error(400, "INVALID_PARAMS");
    let answer = alice.get("/api/admin/users").await.json.to_string();
    assert!(!answer.contains("argon2") && !answer.contains("hash"), "{answer}");
}

#[tokio::test]
async fn every_action_is_in_the_audit_log() {
    let app = App::new().await;
    let alice = app.user("alice").await;
    let bob = app.user("bob").await;
    let (alice_id, bob_id) = (id(&alice).await, id(&bob).await);
    let path = format!("/api/admin/users/{bob_id}");
    let wrong = json!({ "username": "bob", "password": "not his password" });
    app.stranger().post("/api/auth/login", &wrong).await.error(401, "UNAUTHORIZED");
    let key = bob.post("/api/user/api-keys", &json!({ "name": "ci" })).await;
    let key_id = key.data()["id"].as_str().unwrap().to_owned();
    delete(&bob, &format!("/api/user/api-keys/{key_id}")).await.data();
    put(&alice, &path, &json!({ "role": "admin" })).await.data();
    put(&bob, &format!("/api/admin/users/{alice_id}"), &json!({ "display_name": "A" })).await.data();
    delete(&alice, &path).await.data();
    let log = alice.get("/api/admin/audit?limit=200").await;
    let entries = log.data()["items"].as_array().unwrap().clone();
    let of = |action: &str| {
        let found = entries.iter().find(|entry| entry["action"] == action);
        found.unwrap_or_else(|| panic!("no {action} in {entries:?}")).clone()
    };
    let failed = of("user.login_failed");
    assert_eq!(
        (&failed["actor"], &failed["target"], &failed["target_name"]),
        (&json!(""), &json!(bob_id), &json!("bob"))
    );
    let made = of("api_key.created");
    assert_eq!((&made["actor"], &made["actor_name"]), (&json!(bob_id), &json!("bob")));
    assert_eq!((&made["target"], &made["target_name"]), (&json!(key_id), &json!("ci")));
    assert!(made["credential"].as_str().unwrap().starts_with("ses_"));
    assert_eq!(of("api_key.deleted")["target_name"], "ci");
    let gone = of("user.deleted");
    assert_eq!((&gone["actor_name"], &gone["target_name"]), (&json!("alice"), &json!("bob")));
    assert_eq!(of("user.registered")["target_name"], "bob");
    assert_eq!(of("user.login")["detail"]["method"], "password");
    let updates = alice.get("/api/admin/audit?action=user.updated").await;
    let updates = updates.data()["items"].as_array().unwrap().clone();
    assert_eq!((updates.len(), &updates[1]["detail"]), (2, &json!({ "role": "admin" })));
    let about = alice.get(&format!("/api/admin/audit?target={bob_id}&actor={alice_id}")).await;
    assert_eq!(about.data()["items"].as_array().unwrap().len(), 2, "{}", about.json);
    // What never happened is in no log.
    assert!(entries.iter().all(|entry| entry["action"] != "password.changed"));
}

#[tokio::test]
async fn an_invitation_lets_one_person_in() {
    let app = App::configured(|config| config.registration = hub_core::config::Registration::Invite).await;
    let admin = app.operator_admin("alice").await;
    let body = |name: &str| json!({ "username": name, "password": crate::testing::PASSWORD });
    app.stranger().post("/api/auth/register", &body("bob")).await.error(403, "FORBIDDEN");
    for days in [json!(0), json!(91), json!(-1)] {
        let reply = admin.post("/api/admin/invites", &json!({ "expires_in_days": days })).await;
        assert!(reply.error(400, "INVALID_PARAMS").to_string().contains("expires_in_days"));
    }
    let invite = admin.post("/api/admin/invites", &json!({})).await;
    let invite = invite.data()["invite"].as_str().unwrap().to_owned();
    let with = |name: &str, invite: &str| {
        let mut body = body(name);
        body["invite"] = json!(invite);
        body
    };
    app.stranger().post("/api/auth/register", &with("bob", "hubi_guess")).await.error(401, "INVALID_TOKEN");
    // What is refused for another reason leaves it.
    app.stranger().post("/api/auth/register", &with("alice", &invite)).await.error(409, "CONFLICT");
    let bob = app.stranger().post("/api/auth/register", &with("bob", &invite)).await;
    assert_eq!(bob.data()["role"], "member");
    app.stranger().post("/api/auth/register", &with("carol", &invite)).await.error(401, "INVALID_TOKEN");
    let late = admin.post("/api/admin/invites", &json!({ "expires_in_days": 1 })).await;
    let late = late.data()["invite"].as_str().unwrap().to_owned();
    app.clock.advance(std::time::Duration::from_secs(24 * 60 * 60));
    app.stranger().post("/api/auth/register", &with("carol", &late)).await.error(401, "INVALID_TOKEN");
}

#[tokio::test]
async fn an_invitation_is_useless_while_registration_is_closed() {
    let app = App::configured(|config| config.registration = hub_core::config::Registration::Closed).await;
    let admin = app.operator_admin("alice").await;
    admin.post("/api/admin/invites", &json!({})).await.error(409, "CONFLICT");
    let body = json!({ "username": "bob", "password": crate::testing::PASSWORD });
    app.stranger().post("/api/auth/register", &body).await.error(403, "FORBIDDEN");
}

#[tokio::test]
async fn statistics_have_an_hour_of_minutes() {
    let app = App::new().await;
    let alice = app.user("alice").await;
    app.hub.context().node.counters.messages.count("received");
    let reply = alice.get("/api/admin/stats").await;
    let stats = reply.data();
    assert_eq!(stats["users"], json!({ "total": 1, "active": 1, "disabled": 0, "admins": 1 }));
    assert_eq!((&stats["bots"]["total"], &stats["bots"]["by_status"]["online"]), (&json!(0), &json!(0)));
    assert_eq!(stats["messages"], json!({ "in": 1, "out": 0 }));
    assert_eq!(stats["deliveries"], json!({ "pending": 0, "parked": 0, "done": 0, "dead": 0 }));
    assert!(stats.get("oldest_pending_at").is_none());
    let series = stats["series"].as_array().unwrap();
    assert_eq!(
        (series.len(), &series[59]["messages_in"], &series[58]["messages_in"]),
        (60, &json!(1), &json!(0))
    );
}
