use super::*;
use crate::{
    Hub,
    access::{Role as UserRole, UserActor},
    error::ErrorCode,
    id::UserId,
    page::PageRequest,
    store::{StoreConfig, audit::AuditFilter},
};

const KEY: &str = "sk-a-key-of-the-administrator";

async fn hub(folder: &tempfile::TempDir) -> Hub {
    let store = StoreConfig::Sqlite(folder.path().join("hub.db"));
    Hub::builder().store(store).secret_key([7; 32]).open().await.unwrap()
}

fn user(role: UserRole) -> Actor {
    Actor::User(UserActor::embedded(UserId::from_u128(1), role))
}

fn with_key(key: &str) -> AiConfigUpdate {
    AiConfigUpdate { api_key: Change::Set(key.into()), ..AiConfigUpdate::default() }
}

#[tokio::test]
async fn the_key_is_never_shown_and_is_kept_until_it_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(&folder).await;
    let (configs, admin) = (hub.ai_config(), user(UserRole::Admin));
    let fresh = configs.get(&admin).await.unwrap();
    assert_eq!((fresh.api_key, fresh.updated_at), (None, None));
    assert!(!fresh.settings.enabled);
    let set = configs.set(&admin, with_key(KEY)).await.unwrap();
    assert_eq!(set.api_key.as_deref(), Some("***ator"));
    assert!(set.settings.enabled && set.updated_at.is_some());
    assert!(!format!("{set:?}").contains(KEY));
    // What a form sends back, what is left out, and what another one sends back later.
    for kept in ["***ator", "***", "***old mask"] {
        assert_eq!(configs.set(&admin, with_key(kept)).await.unwrap().api_key.as_deref(), Some("***ator"));
    }
    let other = AiConfigUpdate { model: "other".to_owned(), ..AiConfigUpdate::default() };
    assert_eq!(configs.set(&admin, other).await.unwrap().api_key.as_deref(), Some("***ator"));
    let row = hub.context().store.read().await.unwrap().ai().config().await.unwrap().unwrap();
    assert!(!format!("{row:?}").contains(KEY), "sealed at rest");
    let global = GlobalAi::open(row, &hub.context().sealer).unwrap();
    assert_eq!(global.api_key.unwrap().expose(), KEY);
    assert_eq!(global.settings.model, "other");
    assert_eq!(configs.set(&admin, with_key("short")).await.unwrap().api_key.as_deref(), Some("***"));
    let cleared = AiConfigUpdate { api_key: Change::Clear, ..AiConfigUpdate::default() };
    assert_eq!(configs.set(&admin, cleared).await.unwrap().api_key, None);
    let filter = AuditFilter { action: Some("ai_config.changed".to_owned()), ..AuditFilter::default() };
    let log = hub.admin().audit(&admin, &filter, &PageRequest::default()).await.unwrap().items;
    let keys: Vec<_> = log.iter().map(|entry| entry.detail["api_key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["cleared", "replaced", "kept", "kept", "kept", "kept", "replaced"]);
    assert_eq!((&log[2].detail["model"], log[2].actor.as_str()), (&json!("other"), &*admin.principal()));
    assert!(!format!("{log:?}").contains(KEY));
    hub.shutdown().await;
}

#[tokio::test]
async fn only_administrators_read_or_change_the_ai_settings() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(&folder).await;
    let (configs, member) = (hub.ai_config(), user(UserRole::Member));
    let refusals = [
        configs.get(&member).await.err(),
        configs.set(&member, with_key(KEY)).await.err(),
        configs.test(&member).await.err(),
    ];
    assert!(refusals.iter().all(|error| error.as_ref().unwrap().code() == ErrorCode::Forbidden));
    assert_eq!(hub.context().store.read().await.unwrap().ai().config().await.unwrap(), None);
    let unset = configs.test(&Actor::Operator).await.unwrap_err();
    assert_eq!(unset.code(), ErrorCode::Conflict);
    hub.shutdown().await;
}

#[tokio::test]
async fn every_bad_field_is_named_and_nothing_changes() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(&folder).await;
    let bad = AiConfigUpdate {
        base_url: "http://169.254.169.254/v1".to_owned(),
        api_key: Change::Set("a b".into()),
        model: String::new(),
        models: vec!["a\nb".to_owned()],
        system_prompt: "x".repeat(MAX_PROMPT + 1),
        max_tokens: Some(0),
        daily_tokens: Some(0),
        ..AiConfigUpdate::default()
    };
    let error = hub.ai_config().set(&Actor::Operator, bad).await.unwrap_err();
    let fields: Vec<_> = error.details().iter().map(|detail| detail.field.as_ref()).collect();
    let all = ["base_url", "model", "models[0]", "system_prompt", "max_tokens", "daily_tokens", "api_key"];
    assert_eq!(fields, all);
    for base_url in ["", "https://a.example/v1?key=1", "ftp://a.example", "https://u:p@a.example/"] {
        let bad = AiConfigUpdate { base_url: base_url.to_owned(), ..AiConfigUpdate::default() };
        let error = hub.ai_config().set(&Actor::Operator, bad).await.unwrap_err();
        assert_eq!(error.details()[0].field, "base_url", "{base_url}");
    }
    assert_eq!(hub.context().store.read().await.unwrap().ai().config().await.unwrap(), None);
    hub.shutdown().await;
}

#[test]
fn channels_get_the_models_that_the_administrator_named() {
    let settings = AiConfigSettings { models: vec!["big".to_owned()], ..AiConfigSettings::default() };
    let given = ["", DEFAULT_MODEL, "big", "huge"].map(|wanted| settings.model_for(wanted));
    assert_eq!(given, [Some(DEFAULT_MODEL), Some(DEFAULT_MODEL), Some("big"), None]);
}
