use std::time::Duration;

use hub_core::{
    secret::{Sealed, TokenHash},
    store::sign_in_flows::{FlowPurpose, FlowRow},
    time::Timestamp,
};

use crate::support::database::{Db, START};

contract!("sign_in_flows": {
    a_ceremony_is_taken_once_by_its_browser_for_its_purpose => [insert, take],
    only_so_many_are_under_way => [trim, trim_all],
    an_expired_flow_is_deleted => [take, delete_expired],
});

const MINUTE: Duration = Duration::from_secs(60);

async fn begin(db: &Db, id: &str, browser: &str, at: Timestamp) {
    let (id, browser) = (TokenHash::of(id), TokenHash::of(browser));
    let state = Sealed::from("state".to_owned());
    commit!(db, |tx| {
        let row = FlowRow {
            id: &id,
            purpose: FlowPurpose::PasskeyLogin,
            browser: &browser,
            state: &state,
            created_at: at,
            expires_at: at + MINUTE,
        };
        tx.sign_in_flows().insert(&row).await
    })
    .unwrap();
}

async fn take(db: &Db, id: &str, purpose: FlowPurpose, browser: &str, at: Timestamp) -> bool {
    let (id, browser) = (TokenHash::of(id), TokenHash::of(browser));
    let state = commit!(db, |tx| tx.sign_in_flows().take(&id, purpose, &browser, at).await).unwrap();
    state.inspect(|state| assert_eq!(state.as_str(), "state")).is_some()
}

async fn a_ceremony_is_taken_once_by_its_browser_for_its_purpose(db: &Db) {
    begin(db, "one", "mine", START).await;
    assert!(!take(db, "two", FlowPurpose::PasskeyLogin, "mine", START).await);
    assert!(!take(db, "one", FlowPurpose::PasskeyRegistration, "mine", START).await);
    assert!(!take(db, "one", FlowPurpose::External, "mine", START).await);
    assert!(!take(db, "one", FlowPurpose::PasskeyLogin, "another", START).await);
    let tries = (0..20).map(|_| take(db, "one", FlowPurpose::PasskeyLogin, "mine", START));
    let taken = futures_util::future::join_all(tries).await;
    assert_eq!(taken.into_iter().filter(|taken| *taken).count(), 1);
}

async fn only_so_many_are_under_way(db: &Db) {
    for n in 0..4 {
        begin(db, &n.to_string(), "mine", START + MINUTE * n / 8).await;
    }
    begin(db, "five", "another", START + MINUTE / 2).await;
    let trim_all = async |at, keep| commit!(db, |tx| tx.sign_in_flows().trim_all(at, keep).await).unwrap();
    assert_eq!(trim_all(START + MINUTE, 4).await, 0, "the first has expired");
    assert_eq!((trim_all(START, 4).await, trim_all(START, 4).await), (1, 0));
    begin(db, "0", "mine", START).await;
    let browser = TokenHash::of("mine");
    assert_eq!(commit!(db, |tx| tx.sign_in_flows().trim(&browser, 2).await).unwrap(), 2);
    assert_eq!(db.count("sign_in_flows").await, 3, "no other user's");
    assert!(take(db, "3", FlowPurpose::PasskeyLogin, "mine", START).await, "the newest stay");
}

async fn an_expired_flow_is_deleted(db: &Db) {
    for id in ["one", "two", "three"] {
        begin(db, id, id, START).await;
    }
    begin(db, "late", "late", START + MINUTE).await;
    assert!(!take(db, "one", FlowPurpose::PasskeyLogin, "one", START + MINUTE).await);
    let expired = async |limit| {
        commit!(db, |tx| tx.sign_in_flows().delete_expired(START + MINUTE, limit).await).unwrap()
    };
    assert_eq!((expired(2).await, expired(5).await), (2, 1));
    assert_eq!(db.count("sign_in_flows").await, 1);
}
