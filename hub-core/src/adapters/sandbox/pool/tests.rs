//! Tests of the order of slots and of runs that are made together.

use futures_util::poll;

use super::*;

async fn slot(pool: &Arc<Pool>, tenant: &str) -> Result<Slot, SandboxFault> {
    match pool.turn(tenant, None).await? {
        Turn::Slot(slot) => Ok(slot),
        other => panic!("{other:?}"),
    }
}

async fn trusted(pool: &Arc<Pool>, tenant: &str) -> Slot {
    slot(pool, tenant).await.unwrap().judge(true);
    slot(pool, tenant).await.unwrap()
}

fn offer(source: u8) -> Offer {
    let message = serde_json::value::to_raw_value("").unwrap();
    let request = crate::sandbox::PluginRequest {
        url: String::new(),
        method: String::new(),
        headers: std::collections::BTreeMap::new(),
        body: crate::sandbox::Body::Empty,
    };
    let input = Arc::new(HookInput::on_request(message, request));
    Offer { source: [source; 32], input }
}

#[tokio::test]
async fn waiting_runs_of_one_tenant_and_source_are_made_together() {
    let pool = Pool::new(1, 100);
    let held = trusted(&pool, "a").await;
    let offers = [Some(1), Some(2), None, Some(1), Some(1)];
    let mut runs: Vec<_> =
        offers.into_iter().map(|source| Box::pin(pool.turn("a", source.map(offer)))).collect();
    runs.push(Box::pin(pool.turn("b", Some(offer(1)))));
    for run in &mut runs {
        assert!(poll!(run).is_pending());
    }
    let joined = pool.join(&held, &[1; 32]);
    assert_eq!(joined.inputs().count(), 3);
    assert!(pool.join(&held, &[1; 32]).is_empty());
    let outcome = HookOutcome { memory_bytes: 7, ..HookOutcome::default() };
    joined.ran([outcome], Timestamp::MIN);
    let mut turns = Vec::new();
    for run in &mut runs {
        turns.push(match poll!(run) {
            std::task::Poll::Ready(Ok(Turn::Ran(outcome, _))) => outcome.memory_bytes.to_string(),
            std::task::Poll::Ready(Ok(Turn::Alone)) => "alone".to_owned(),
            other => format!("{other:?}"),
        });
    }
    assert_eq!(turns, ["7", "Pending", "Pending", "alone", "alone", "Pending"]);
}

#[tokio::test]
async fn a_tenant_on_trial_takes_no_runs_along_and_seats_share_them() {
    let pool = Pool::new(2, 400);
    let _held = trusted(&pool, "b").await;
    let trial = slot(&pool, "a").await.unwrap();
    let mut runs: Vec<_> = (0..40).map(|_| Box::pin(pool.turn("a", Some(offer(1))))).collect();
    for run in &mut runs {
        assert!(poll!(run).is_pending());
    }
    assert!(pool.join(&trial, &[1; 32]).is_empty());
    trial.judge(true);
    drop(trial);
    let mut slots = Vec::new();
    for run in &mut runs {
        if let std::task::Poll::Ready(Ok(Turn::Slot(slot))) = poll!(run) {
            slots.push(slot);
        }
    }
    assert_eq!(slots.len(), 1);
    let counts = [(); 4].map(|()| {
        let joined = pool.join(&slots[0], &[1; 32]);
        let count = joined.inputs().count();
        std::mem::forget(joined);
        count
    });
    assert_eq!(counts, [15, 12, 6, 3]);
}

#[tokio::test]
async fn tenants_take_turns() {
    let pool = Pool::new(1, 100);
    let held = trusted(&pool, "a").await;
    let mut order = Vec::new();
    let waits = ["a", "a", "a", "b", "c", "b"];
    let mut slots: Vec<_> = waits.iter().map(|tenant| (*tenant, Box::pin(slot(&pool, tenant)))).collect();
    for (_, slot) in &mut slots {
        assert!(poll!(slot).is_pending());
    }
    drop(held);
    while !slots.is_empty() {
        for at in 0..slots.len() {
            if let std::task::Poll::Ready(slot) = poll!(&mut slots[at].1) {
                order.push(slots.remove(at).0);
                drop(slot.unwrap());
                break;
            }
        }
    }
    assert_eq!(order.concat(), "abcaba");
}

#[tokio::test]
async fn a_full_queue_refuses_and_one_tenant_does_not_fill_it() {
    let pool = Pool::new(1, 8);
    let _held = slot(&pool, "a").await.unwrap();
    let mut waiting = Vec::new();
    for _ in 0..2 {
        waiting.push(Box::pin(slot(&pool, "a")));
        assert!(poll!(waiting.last_mut().unwrap()).is_pending());
    }
    assert_eq!(slot(&pool, "a").await.unwrap_err(), SandboxFault::Busy);
    for tenant in ["b", "c", "d", "e", "f", "g"] {
        waiting.push(Box::pin(slot(&pool, tenant)));
        assert!(poll!(waiting.last_mut().unwrap()).is_pending());
    }
    assert_eq!(slot(&pool, "h").await.unwrap_err(), SandboxFault::Busy);
    pool.close();
    for slot in waiting {
        assert_eq!(slot.await.unwrap_err(), SandboxFault::Closed);
    }
    assert_eq!(slot(&pool, "a").await.unwrap_err(), SandboxFault::Closed);
}

#[tokio::test]
async fn tenants_with_hanging_plugins_leave_seats_to_the_others() {
    let pool = Pool::new(4, 100);
    let good = trusted(&pool, "good").await;
    let _one = slot(&pool, "bad").await.unwrap();
    let two = slot(&pool, "worse").await.unwrap();
    let mut three = Box::pin(slot(&pool, "worst"));
    assert!(poll!(&mut three).is_pending());
    let more = slot(&pool, "good").await.unwrap();
    good.judge(false);
    drop((good, more));
    assert!(poll!(Box::pin(slot(&pool, "good"))).is_pending());
    two.judge(false);
    drop(two);
    assert!(poll!(&mut three).is_ready());
}

#[tokio::test]
async fn a_cancelled_wait_takes_no_seat() {
    let pool = Pool::new(1, 100);
    let held = trusted(&pool, "a").await;
    let mut gone = Box::pin(slot(&pool, "b"));
    assert!(poll!(&mut gone).is_pending());
    let mut next = Box::pin(slot(&pool, "c"));
    assert!(poll!(&mut next).is_pending());
    drop(gone);
    drop(held);
    assert!(poll!(&mut next).is_ready());
}
