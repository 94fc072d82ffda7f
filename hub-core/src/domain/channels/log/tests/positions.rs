//! Tests of a channel's position, also after a crash.

use super::*;

#[tokio::test]
async fn a_crash_right_after_the_first_acknowledgement_skips_nothing() {
    for acked in [2, 0] {
        let mut stage = Stage::new().await;
        let first = stage.listen(None).await;
        stage.write(texts(1..4)).await;
        first.acknowledge(acked).await.unwrap();
        drop(first);
        stage.hub.kill().await;
        stage.hub.restart().await;
        assert_eq!(stage.listen_live().await.position(), acked);
    }
}

#[tokio::test]
async fn a_client_that_announces_acknowledgements_makes_the_position_count() {
    let mut stage = Stage::new().await;
    let first = stage.listen(None).await;
    stage.write(texts(1..4)).await;
    assert_eq!(stage.listen_live().await.position(), 3, "a poll or a reader alone changes nothing");
    first.keep_position().await.unwrap();
    assert_eq!(stage.listen_live().await.position(), 0);
    drop(first);
    stage.hub.kill().await;
    stage.hub.restart().await;
    let again = stage.listen_live().await;
    assert_eq!(again.position(), 0);
    again.acknowledge(2).await.unwrap();
    again.keep_position().await.unwrap();
    assert_eq!(stage.listen_live().await.position(), 2, "which moves nothing back");
}

#[tokio::test]
async fn the_cursor_of_a_poll_makes_the_position_count_at_once() {
    let mut stage = Stage::new().await;
    let client = stage.client().await;
    let channels = stage.hub().channels();
    let empty = channels.poll(&client, None, None, Duration::ZERO, async {}).await.unwrap();
    channels.poll(&client, Some(&empty.next_cursor), None, Duration::ZERO, async {}).await.unwrap();
    stage.write(texts(1..4)).await;
    stage.hub.kill().await;
    stage.hub.restart().await;
    assert_eq!(stage.listen_live().await.position(), 0);
}
