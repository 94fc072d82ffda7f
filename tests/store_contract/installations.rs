use std::{collections::BTreeMap, time::Duration};

use hub_core::{
    apps::{App, AppScopes, AppTool, Installation, InstallationRecord, NewToken},
    id::{AppId, BotId, InstallationId},
    page::PageRequest,
    secret::{Sealed, TokenHash},
    store::fault::is_constraint,
};

use super::{
    apps::{add, app},
    scene::{everything, scope},
};
use crate::support::database::{Db, START};

contract!("installations": {
    an_app_is_put_onto_a_bot_once => [insert, find, count],
    a_bots_apps_are_listed_newest_first => [page],
    an_installation_is_changed_and_taken_off => [update, delete],
    a_token_authenticates_its_installation_while_all_owners_are_active => [find_by_token],
    an_app_acts_on_the_bots_that_have_it => [find_of_app],
    an_installation_has_tools_of_its_own => [set_tools],
    a_configuration_is_stored_sealed_and_removed => [config, set_config],
    a_token_is_ended_while_it_is_the_current_one => [end_token],
    handles_are_taken_per_bot => [has_handle],
    apps_that_are_switched_on_are_loaded_with_their_commands => [runtimes],
    a_token_is_replaced_with_and_without_grace => [replace_token],
    apps_that_models_can_call_are_loaded_with_their_tools => [toolboxes],
});

fn token(name: &str, old_until: Option<Duration>) -> NewToken {
    NewToken {
        hash: TokenHash::of(name),
        last4: name.chars().take(4).collect(),
        at: START,
        old_until: old_until.map(|after| START + after),
    }
}

fn installation(db: &Db, app_id: AppId, bot_id: BotId, handle: &str) -> Installation {
    Installation {
        id: db.ids.next(),
        app_id,
        app_name: handle.to_owned(),
        app_slug: handle.to_owned(),
        bot_id,
        handle: handle.to_owned(),
        scopes: AppScopes::parse(["bot:read"]).unwrap(),
        tools: Vec::new(),
        config: BTreeMap::new(),
        enabled: true,
        token_last4: "toke".to_owned(),
        created_at: START,
    }
}

fn stored(installation: Installation) -> InstallationRecord {
    InstallationRecord { installation, config: None }
}

/// Puts an app onto a bot under its own name.
pub async fn install(db: &Db, app_id: AppId, bot_id: BotId, handle: &str) -> InstallationId {
    let new = installation(db, app_id, bot_id, handle);
    let (id, token) = (new.id, token(&format!("token of {}", new.id), None));
    commit!(db, |tx| tx.installations().insert(&new, &token).await).unwrap();
    id
}

async fn an_app_is_put_onto_a_bot_once(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    let (bot, other) = (db.bot(ada).await, db.bot(ada).await);
    let (weather, news) = (add(db, app(db, bob, "weather")).await, add(db, app(db, bob, "news")).await);
    let new = installation(db, weather, bot, "weather");
    let (inserted, first) = (new.clone(), token("token", None));
    commit!(db, |tx| tx.installations().insert(&inserted, &first).await).unwrap();
    let insert = async |new: Installation, token: NewToken| {
        commit!(db, |tx| tx.installations().insert(&new, &token).await).map_err(|error| is_constraint(&error))
    };
    // The app is there; the handle is; the token is.
    assert_eq!(insert(installation(db, weather, bot, "second"), token("b", None)).await, Err(true));
    assert_eq!(insert(installation(db, news, bot, "weather"), token("b", None)).await, Err(true));
    assert_eq!(insert(installation(db, news, bot, "news"), token("token", None)).await, Err(true));
    assert_eq!(insert(installation(db, weather, other, "weather"), token("b", None)).await, Ok(()));
    let mut read = db.store.read().await.unwrap();
    assert_eq!(read.installations().count(bot).await.unwrap(), 1);
    assert_eq!(read.installations().find(scope(ada), bot, weather).await.unwrap(), Some(stored(new)));
    assert!(read.installations().find(scope(ada), bot, news).await.unwrap().is_none());
    assert!(read.installations().find(scope(bob), bot, weather).await.unwrap().is_none());
    assert!(read.installations().find(everything(), bot, weather).await.unwrap().is_some());
}

async fn a_bots_apps_are_listed_newest_first(db: &Db) {
    let ada = db.user("ada").await;
    let (bot, other) = (db.bot(ada).await, db.bot(ada).await);
    let mut made = Vec::new();
    for name in ["one", "two", "three"] {
        let id = add(db, app(db, ada, name)).await;
        made.push(install(db, id, bot, name).await);
        install(db, id, other, name).await;
    }
    let mut read = db.store.read().await.unwrap();
    let all = read.installations().page(bot, &PageRequest::default()).await.unwrap();
    assert_eq!(all.iter().map(|row| row.installation.id).collect::<Vec<_>>(), [made[2], made[1], made[0]]);
    let cursor = hub_core::page::encode("apps", &made[2].to_string());
    let page = PageRequest::parse("apps", Some(1), Some(&cursor)).unwrap();
    let rest = read.installations().page(bot, &page).await.unwrap();
    assert_eq!(rest.iter().map(|row| row.installation.id).collect::<Vec<_>>(), [made[1], made[0]]);
}

async fn an_installation_is_changed_and_taken_off(db: &Db) {
    let ada = db.user("ada").await;
    let bot = db.bot(ada).await;
    let (weather, news) = (add(db, app(db, ada, "weather")).await, add(db, app(db, ada, "news")).await);
    let id = install(db, weather, bot, "weather").await;
    install(db, news, bot, "news").await;
    let scopes = AppScopes::parse(["message:write", "contact:read"]).unwrap();
    commit!(db, |tx| tx.installations().update(id, "sky", scopes, false, START).await).unwrap();
    let taken = commit!(db, |tx| tx.installations().update(id, "news", scopes, false, START).await);
    assert!(is_constraint(&taken.unwrap_err()));
    let found = async || {
        let mut read = db.store.read().await.unwrap();
        read.installations().find(everything(), bot, weather).await.unwrap()
    };
    let changed = found().await.unwrap().installation;
    assert_eq!((&*changed.handle, changed.scopes, changed.enabled), ("sky", scopes, false));
    commit!(db, |tx| tx.installations().delete(id).await).unwrap();
    assert!(found().await.is_none());
    assert_eq!(db.count("app_installations").await, 1);
}

async fn a_token_is_replaced_with_and_without_grace(db: &Db) {
    let ada = db.user("ada").await;
    let bot = db.bot(ada).await;
    let weather = add(db, app(db, ada, "weather")).await;
    let id = install(db, weather, bot, "weather").await;
    let hashes = async || {
        let sql = "SELECT token_hash || ' ' || COALESCE(old_token_hash, '-') || ' ' || token_last4 || ' ' ||
            CAST(COALESCE(old_token_until, 0) AS TEXT) FROM app_installations";
        db.text(sql).await.unwrap()
    };
    let first = TokenHash::of(&format!("token of {id}"));
    let hour = Duration::from_secs(3600);
    let (second, third) = (token("second", Some(hour)), token("third", None));
    commit!(db, |tx| tx.installations().replace_token(id, &second).await).unwrap();
    let until = (START + hour).as_millis();
    let (first, second) = (first.as_str().to_owned(), TokenHash::of("second"));
    assert_eq!(hashes().await, format!("{} {first} seco {until}", second.as_str()));
    commit!(db, |tx| tx.installations().replace_token(id, &third).await).unwrap();
    assert_eq!(hashes().await, format!("{} - thir 0", TokenHash::of("third").as_str()));
}

async fn a_token_authenticates_its_installation_while_all_owners_are_active(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    let (bot, own) = (db.bot(ada).await, db.bot(bob).await);
    let weather = add(db, app(db, bob, "weather")).await;
    let id = install(db, weather, bot, "weather").await;
    install(db, weather, own, "weather").await;
    let holder = async |text: &str, after: Duration| {
        let mut read = db.store.read().await.unwrap();
        read.installations().find_by_token(&TokenHash::of(text), START + after).await.unwrap()
    };
    let text = format!("token of {id}");
    let (found, enabled) = holder(&text, Duration::ZERO).await.unwrap();
    assert_eq!((found.installation_id, found.app_id, found.bot_id), (id, weather, bot));
    assert_eq!((found.owner_id, found.is_own, enabled), (ada, false, true));
    assert_eq!(found.scopes, AppScopes::parse(["bot:read"]).unwrap());
    assert!(holder("another", Duration::ZERO).await.is_none());
    for (user, name) in [(ada, "the bot's owner"), (bob, "the author")] {
        db.sql(format!("UPDATE users SET status = 'disabled' WHERE id = '{user}'")).await;
        assert!(!holder(&text, Duration::ZERO).await.unwrap().1, "{name} is disabled");
        db.sql(format!("UPDATE users SET status = 'active' WHERE id = '{user}'")).await;
    }
    let hour = Duration::from_secs(3600);
    let second = token("second", Some(hour));
    commit!(db, |tx| tx.installations().replace_token(id, &second).await).unwrap();
    assert!(holder("second", hour).await.is_some());
    assert!(holder(&text, super::scene::just_before(hour)).await.is_some());
    assert!(holder(&text, hour).await.is_none());
    let of_own = db.text(format!("SELECT id FROM app_installations WHERE bot_id = '{own}'")).await.unwrap();
    assert!(holder(&format!("token of {of_own}"), hour).await.unwrap().0.is_own);
}

async fn an_app_acts_on_the_bots_that_have_it(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    let bot = db.bot(ada).await;
    let (weather, news) = (add(db, app(db, bob, "weather")).await, add(db, app(db, bob, "news")).await);
    let id = install(db, weather, bot, "weather").await;
    let find = async |app: AppId, id: InstallationId| {
        db.store.read().await.unwrap().installations().find_of_app(app, id).await.unwrap()
    };
    let (actor, enabled) = find(weather, id).await.unwrap();
    assert_eq!((actor.installation_id, actor.app_id, actor.bot_id, actor.owner_id), (id, weather, bot, ada));
    assert_eq!((actor.is_own, enabled), (false, true));
    assert!(find(news, id).await.is_none(), "it is another app's");
    assert!(find(weather, db.ids.next()).await.is_none());
    for user in [ada, bob] {
        db.sql(format!("UPDATE users SET status = 'disabled' WHERE id = '{user}'")).await;
        assert!(!find(weather, id).await.unwrap().1);
        db.sql(format!("UPDATE users SET status = 'active' WHERE id = '{user}'")).await;
    }
}

async fn an_installation_has_tools_of_its_own(db: &Db) {
    let ada = db.user("ada").await;
    let bot = db.bot(ada).await;
    let weather = add(db, app(db, ada, "weather")).await;
    let id = install(db, weather, bot, "weather").await;
    let tools = vec![AppTool {
        name: "t".to_owned(),
        description: "'; DROP TABLE apps".to_owned(),
        command: None,
        parameters: None,
    }];
    let wanted = tools.clone();
    commit!(db, |tx| tx.installations().set_tools(id, &tools, START).await).unwrap();
    let mut read = db.store.read().await.unwrap();
    let found = read.installations().find(everything(), bot, weather).await.unwrap().unwrap();
    assert_eq!(found.installation.tools, wanted);
}

async fn a_configuration_is_stored_sealed_and_removed(db: &Db) {
    let ada = db.user("ada").await;
    let bot = db.bot(ada).await;
    let (weather, news) = (add(db, app(db, ada, "weather")).await, add(db, app(db, ada, "news")).await);
    let id = install(db, weather, bot, "weather").await;
    let other = install(db, news, bot, "news").await;
    for text in [Some("first"), Some("second"), None] {
        let config = text.map(|text| Sealed::from(text.to_owned()));
        let wanted = config.clone();
        commit!(db, |tx| tx.installations().set_config(id, config.as_ref(), START).await).unwrap();
        let mut read = db.store.read().await.unwrap();
        assert_eq!(read.installations().config(id).await.unwrap(), wanted);
        let found = read.installations().find(everything(), bot, weather).await.unwrap().unwrap();
        assert_eq!(found.config, wanted);
        let all = read.installations().page(bot, &PageRequest::default()).await.unwrap();
        assert_eq!((&all[0].config, &all[1].config), (&None, &wanted));
        assert_eq!(read.installations().config(other).await.unwrap(), None);
    }
}

async fn a_token_is_ended_while_it_is_the_current_one(db: &Db) {
    let ada = db.user("ada").await;
    let bot = db.bot(ada).await;
    let weather = add(db, app(db, ada, "weather")).await;
    let id = install(db, weather, bot, "weather").await;
    let first = TokenHash::of(&format!("token of {id}"));
    let end = async |hash: &TokenHash| {
        let (hash, dead) = (hash.clone(), TokenHash::of("dead"));
        commit!(db, |tx| tx.installations().end_token(id, &hash, &dead).await).unwrap()
    };
    assert!(!end(&TokenHash::of("another")).await);
    let second = token("second", Some(Duration::from_secs(3600)));
    commit!(db, |tx| tx.installations().replace_token(id, &second).await).unwrap();
    // One in its grace ends with the one that replaced it.
    assert!(end(&first).await);
    assert!(!end(&first).await);
    let mut read = db.store.read().await.unwrap();
    for gone in [first, TokenHash::of("second")] {
        assert!(read.installations().find_by_token(&gone, START).await.unwrap().is_none());
    }
}

async fn handles_are_taken_per_bot(db: &Db) {
    let ada = db.user("ada").await;
    let (bot, other) = (db.bot(ada).await, db.bot(ada).await);
    let weather = add(db, app(db, ada, "weather")).await;
    install(db, weather, bot, "sky").await;
    let mut read = db.store.read().await.unwrap();
    assert!(read.installations().has_handle(bot, "sky").await.unwrap());
    assert!(!read.installations().has_handle(bot, "weather").await.unwrap());
    assert!(!read.installations().has_handle(other, "sky").await.unwrap());
}

async fn apps_that_are_switched_on_are_loaded_with_their_commands(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    let bot = db.bot(ada).await;
    let tool = |command: &str| AppTool {
        name: command.to_owned(),
        description: String::new(),
        command: Some(command.to_owned()),
        parameters: None,
    };
    let mut weather = app(db, bob, "weather");
    weather.webhook_url = Some("https://app.example/hub".to_owned());
    weather.webhook_verified = true;
    weather.tools = vec![tool("weather")];
    weather.events = vec![hub_core::apps::AppEventKind::Command];
    let weather = add(db, weather).await;
    // One that has not shown that it is there, and one without an address: both may open sockets.
    let silent = App { webhook_url: Some("https://b.example".to_owned()), ..app(db, bob, "silent") };
    let silent = add(db, silent).await;
    let nowhere = add(db, app(db, bob, "nowhere")).await;
    for (id, name) in [(weather, "weather"), (silent, "silent"), (nowhere, "nowhere")] {
        install(db, id, bot, name).await;
    }
    let loaded = async || db.store.read().await.unwrap().installations().runtimes(bot).await.unwrap();
    let found = loaded().await;
    assert_eq!(
        found.iter().map(|app| app.app.app_id).collect::<Vec<_>>(),
        [weather, silent, nowhere],
        "in the order of their installation"
    );
    let (id, tools) = (found[0].app.installation_id, vec![tool("sky")]);
    assert_eq!(
        (found[0].app.app_id, found[0].app.owner_id, found[0].handle.as_str()),
        (weather, ada, "weather")
    );
    assert_eq!((&found[0].commands[..], found[0].events.len()), (&["weather".to_owned()][..], 1));
    commit!(db, |tx| tx.installations().set_tools(id, &tools, START).await).unwrap();
    assert_eq!(loaded().await[0].commands, ["weather", "sky"]);
    db.sql(format!("UPDATE users SET status = 'disabled' WHERE id = '{bob}'")).await;
    assert!(loaded().await.is_empty());
}

async fn apps_that_models_can_call_are_loaded_with_their_tools(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    let (bot, other) = (db.bot(ada).await, db.bot(ada).await);
    let tool = |name: &str, description: &str| AppTool {
        name: name.to_owned(),
        description: description.to_owned(),
        command: None,
        parameters: Some(serde_json::json!({ "type": "object" })),
    };
    let reachable = |name: &str, tools: Vec<AppTool>| App {
        webhook_url: Some(format!("https://{name}.example")),
        webhook_verified: true,
        tools,
        ..app(db, bob, name)
    };
    let weather = add(db, reachable("weather", vec![tool("now", "of the app"), tool("later", "")])).await;
    let bare = add(db, reachable("bare", Vec::new())).await;
    let silent = App { webhook_verified: false, ..reachable("silent", vec![tool("now", "")]) };
    let silent = add(db, silent).await;
    let of_weather = install(db, weather, bot, "weather").await;
    let of_bare = install(db, bare, bot, "bare").await;
    install(db, silent, bot, "silent").await;
    install(db, weather, other, "weather").await;
    let loaded = async || db.store.read().await.unwrap().installations().toolboxes(bot).await.unwrap();
    let all = loaded().await;
    let [toolbox] = &all[..] else { panic!("{all:?}") };
    assert_eq!(
        (toolbox.app.installation_id, toolbox.app.app_id, toolbox.app.bot_id),
        (of_weather, weather, bot)
    );
    assert_eq!((toolbox.app.owner_id, toolbox.app.is_own, &*toolbox.app_name), (ada, false, "weather"));
    assert_eq!(
        (&*toolbox.webhook_url, toolbox.webhook_secret.as_str()),
        ("https://weather.example", "sealed")
    );
    assert_eq!(toolbox.app.scopes, AppScopes::parse(["bot:read"]).unwrap());
    let told = |tools: &[AppTool]| -> Vec<(String, String)> {
        tools.iter().map(|tool| (tool.name.clone(), tool.description.clone())).collect()
    };
    let pair = |name: &str, description: &str| (name.to_owned(), description.to_owned());
    assert_eq!(told(&toolbox.tools), [pair("now", "of the app"), pair("later", "")]);
    // What an installation has of its own comes next to them, and before those of the same name.
    for id in [of_weather, of_bare] {
        let own = vec![tool("now", "of this bot")];
        commit!(db, |tx| tx.installations().set_tools(id, &own, START).await).unwrap();
    }
    let all = loaded().await;
    assert_eq!(told(&all[0].tools), [pair("later", ""), pair("now", "of this bot")]);
    assert_eq!((all.len(), told(&all[1].tools)), (2, vec![pair("now", "of this bot")]));
    let scopes = AppScopes::default();
    commit!(db, |tx| tx.installations().update(of_weather, "weather", scopes, false, START).await).unwrap();
    assert_eq!(loaded().await.len(), 1, "switched off");
    db.sql(format!("UPDATE users SET status = 'disabled' WHERE id = '{bob}'")).await;
    assert!(loaded().await.is_empty(), "and so is the author");
}
