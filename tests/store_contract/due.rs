//! Due times after a step of the clock.

use std::time::Duration;

use hub_core::{
    id::NodeId,
    store::due::{Followed, Noted, Reading},
    time::{Clock, Timestamp},
};

use super::scene::{accept_one, stage};
use crate::support::database::Db;

contract!("due": {
    a_step_of_the_clock_moves_due_times_and_leases_once => [follow_clock],
});

const HOUR: Duration = Duration::from_secs(3600);

async fn a_step_of_the_clock_moves_due_times_and_leases_once(db: &Db) {
    let on = stage(db).await;
    accept_one(db, &on, "ann", "1", 0).await;
    let clock = Clock::system();
    let (at, node): (_, NodeId) = (clock.instant(), db.ids.next());
    let follow = async |before: Option<Followed>| {
        let clock = clock.clone();
        commit!(db, |tx| tx.due().follow_clock(before, &clock).await).unwrap()
    };
    let (first, step) = follow(None).await;
    assert_eq!(step, None, "nothing was noted before");
    // Both nodes saw the clock two hours ahead.
    let ahead = first.reading.wall + 2 * HOUR;
    let noted = Noted { seen_at: ahead, moved_ms: 0 };
    let (before, _) = noted.follow(None, Reading { at, wall: ahead });
    let due_at = ahead + HOUR;
    let ends = due_at.as_millis();
    db.sql(format!("UPDATE deliveries SET state = 'parked', due_at = {ends}")).await;
    let other = db.bot(db.user("bob").await).await;
    db.sql(format!("UPDATE bots SET lease_owner = '{node}', lease_until = {ends} WHERE id = '{other}'"))
        .await;
    let stored = async || {
        let sql = format!(
            "SELECT CAST(due_at AS TEXT) FROM deliveries
             UNION ALL SELECT CAST(lease_until AS TEXT) FROM bots WHERE id = '{other}'"
        );
        let texts = db.texts(sql).await;
        texts.iter().map(|text| Timestamp::from_millis(text.parse().unwrap())).collect::<Vec<_>>()
    };
    let (_, step) = follow(Some(before)).await;
    let moved = stored().await;
    let by = u64::try_from(-step.unwrap().by()).unwrap();
    assert_eq!(moved, [due_at - Duration::from_millis(by); 2]);
    assert!(Duration::from_millis(by).abs_diff(2 * HOUR) < Duration::from_secs(60), "{by} ms");
    // The second node measures the same step.
    let (_, step) = follow(Some(before)).await;
    assert_eq!((step, stored().await), (None, moved));
}
