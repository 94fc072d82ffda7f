use std::sync::{Mutex, OnceLock};

use super::*;
use crate::egress::{Shared, client};

/// The behaviour of a receiver when a kept connection is used again.
#[derive(Debug, Clone, Copy)]
enum OnReuse {
    /// Reads the request and closes.
    Close,
    /// Reads nothing and resets the connection.
    Reset,
    /// Reads a part of the request and resets.
    CutIn,
    /// Closes after each response although it said nothing of that.
    CloseAfterEach,
    /// Reads the request and is silent.
    Hang,
}

/// A receiver that keeps connections and ends them in this way. The second value has the requests that it answered.
async fn receiver(on_reuse: OnReuse) -> (Canary, Arc<AtomicUsize>) {
    let answered = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&answered);
    let canary = Canary::start(move |mut stream| {
        let count = Arc::clone(&count);
        async move {
            read_request(&mut stream).await;
            count.fetch_add(1, Ordering::SeqCst);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
            match on_reuse {
                OnReuse::Close => drop(read_request(&mut stream).await),
                OnReuse::Reset => {
                    stream.readable().await.unwrap();
                    stream.set_zero_linger().unwrap();
                }
                OnReuse::CutIn => {
                    let _ = stream.read(&mut [0; 20]).await;
                    stream.set_zero_linger().unwrap();
                }
                OnReuse::CloseAfterEach => {}
                OnReuse::Hang => {
                    read_request(&mut stream).await;
                    std::future::pending::<()>().await;
                }
            }
        }
    })
    .await;
    (canary, answered)
}

#[tokio::test]
async fn a_connection_that_is_closed_when_it_is_used_again_costs_nothing() {
    for on_reuse in [OnReuse::Close, OnReuse::Reset, OnReuse::CutIn, OnReuse::CloseAfterEach] {
        let (canary, answered) = receiver(on_reuse).await;
        let egress = open();
        for count in 1..=50 {
            let answer = egress.send(call(&canary.url("127.0.0.1"))).await;
            assert_eq!(answer.unwrap().status, StatusCode::OK, "{on_reuse:?}, request {count}");
            assert_eq!(answered.load(Ordering::SeqCst), count, "{on_reuse:?}");
        }
    }
}

#[tokio::test]
async fn several_connections_that_are_closed_at_once_cost_nothing() {
    let (canary, answered) = receiver(OnReuse::Close).await;
    let egress = open();
    // Some take a connection that becomes free while they open their own.
    for round in 1..=40 {
        let requests = (0..20).map(|_| egress.send(call(&canary.url("127.0.0.1"))));
        for answer in futures_util::future::join_all(requests).await {
            assert_eq!(answer.unwrap().status, StatusCode::OK);
        }
        assert_eq!(answered.load(Ordering::SeqCst), round * 20);
    }
}

#[tokio::test]
async fn a_new_connection_that_is_closed_is_an_error() {
    let canary = Canary::answering("").await;
    let (broken, written, _) = fault(&open(), call(&canary.url("127.0.0.1"))).await;
    assert_eq!((broken, written, canary.connections()), (EgressFault::Broken, true, 1));
}

#[tokio::test]
async fn silence_on_a_kept_connection_is_not_answered_by_a_second_request() {
    let (canary, answered) = receiver(OnReuse::Hang).await;
    let egress = open();
    egress.send(call(&canary.url("127.0.0.1"))).await.unwrap();
    let short = Call { deadline: Duration::from_millis(100), ..call(&canary.url("127.0.0.1")) };
    let (timeout, written, _) = fault(&egress, short).await;
    assert_eq!((timeout, written, answered.load(Ordering::SeqCst)), (EgressFault::Timeout, true, 1));
}

#[tokio::test]
async fn a_client_that_sends_once_repeats_only_what_may_be_repeated() {
    let (canary, answered) = receiver(OnReuse::Close).await;
    let egress = open().once().fresh();
    egress.send(call(&canary.url("127.0.0.1"))).await.unwrap();
    let (broken, written, _) = fault(&egress, call(&canary.url("127.0.0.1"))).await;
    assert_eq!((broken, written, answered.load(Ordering::SeqCst)), (EgressFault::Broken, true, 1));
    let put = || Call { method: Method::PUT, ..call(&canary.url("127.0.0.1")) };
    for count in 2..=4 {
        egress.send(put()).await.unwrap();
        assert_eq!(answered.load(Ordering::SeqCst), count);
    }
}

/// A server of HTTP/2 without TLS that refuses the requests with these numbers.
async fn refusing(refused: &'static [usize]) -> (Canary, Arc<Mutex<usize>>) {
    let requests = Arc::new(Mutex::new(0));
    let count = Arc::clone(&requests);
    let canary = Canary::start(move |stream| {
        let count = Arc::clone(&count);
        async move {
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                let number = {
                    let mut count = count.lock().unwrap();
                    *count += 1;
                    *count
                };
                if refused.contains(&number) {
                    respond.send_reset(h2::Reason::REFUSED_STREAM);
                } else {
                    respond.send_response(http::Response::new(()), true).unwrap();
                }
            }
        }
    })
    .await;
    (canary, requests)
}

/// A client that speaks HTTP/2 without TLS, which this hub does not otherwise.
fn speaking_http2(like: &Egress) -> Egress {
    let Shared { config, tls, trusted, once, .. } = &*like.0;
    let build = || client::builder(config, tls, !trusted).http2_prior_knowledge().build().unwrap();
    Egress(Arc::new(Shared {
        config: Arc::clone(config),
        http: build(),
        tls: Arc::clone(tls),
        trusted: *trusted,
        once: *once,
        unpooled: OnceLock::from(build()),
    }))
}

#[tokio::test]
async fn a_stream_that_was_refused_is_sent_again_once() {
    let (canary, requests) = refusing(&[1, 4, 5]).await;
    let egress = speaking_http2(&open());
    for expected in [2, 3] {
        egress.send(call(&canary.url("127.0.0.1"))).await.unwrap();
        assert_eq!(*requests.lock().unwrap(), expected);
    }
    let (broken, written, message) = fault(&egress, call(&canary.url("127.0.0.1"))).await;
    assert_eq!((broken, written), (EgressFault::Broken, false), "{message}");
    assert_eq!(*requests.lock().unwrap(), 5);
}

#[tokio::test]
async fn a_refused_stream_of_a_client_that_sends_once_was_not_written() {
    let (canary, requests) = refusing(&[1]).await;
    let (_, written, _) = fault(&speaking_http2(&open().once()), call(&canary.url("127.0.0.1"))).await;
    assert_eq!((written, *requests.lock().unwrap()), (false, 1));
}
