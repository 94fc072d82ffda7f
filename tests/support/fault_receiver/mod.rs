//! A receiver of webhooks that misbehaves: every behaviour that a TCP peer can show, with the outcome that the hub
//! has to record. Behaviours of names are in `tests/faults/names.rs`, those of TLS in `tests/faults/tls.rs`.

mod behaviour;
mod peer;
mod table;

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use hub_core::{tasks::Tasks, time::Clock};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

pub use behaviour::{Behaviour, Listening, Seen, Slot, Then};
pub use peer::{Peer, Request};
pub use table::behaviours;

/// One connection to the receiver.
#[derive(Debug, Clone, Default)]
pub struct Exchange {
    /// Requests that were read whole.
    pub requests: Vec<Request>,
    /// Bytes of answers that the other side's system took.
    pub written: u64,
    /// Duration of the connection; `None` while it is open.
    pub lasted: Option<Duration>,
}

/// A running receiver with one behaviour on a port of its own. It ends when it is dropped.
#[derive(Debug)]
pub struct FaultReceiver {
    /// Its port.
    pub address: SocketAddr,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
    tasks: Tasks,
    /// Sockets that keep the port in its state.
    _kept: (Option<TcpSocket>, Vec<TcpStream>),
}

impl FaultReceiver {
    /// Opens a port on loopback where `behaviour` is shown to every connection.
    pub async fn open(behaviour: &Behaviour) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        // A small buffer: the bytes written are about the bytes that the other side has read.
        socket.set_send_buffer_size(64 * 1024).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = socket.local_addr().unwrap();
        let (exchanges, tasks) = (Arc::<Mutex<Vec<Exchange>>>::default(), Tasks::new());
        let mut kept = (None, Vec::new());
        match behaviour.listening {
            // Bound and not listening: refused, and no one else gets the port.
            Listening::Refuses => kept.0 = Some(socket),
            Listening::Ignores => {
                let listener = socket.listen(1).unwrap();
                kept.1 = fill(address).await;
                tasks.spawn("blackhole", async move {
                    let _listener = listener;
                    std::future::pending::<()>().await;
                });
            }
            Listening::Accepts => {
                let listener = socket.listen(64).unwrap();
                let act = Arc::clone(&behaviour.act);
                let (exchanges, inner) = (Arc::clone(&exchanges), tasks.clone());
                tasks.spawn("fault receiver", accept(listener, act, exchanges, inner));
            }
        }
        Self { address, exchanges, tasks, _kept: kept }
    }

    /// A URL of the receiver.
    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Every connection so far.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges.lock().unwrap().clone()
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Request> {
        self.exchanges().into_iter().flat_map(|exchange| exchange.requests).collect()
    }
}

impl Drop for FaultReceiver {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

async fn accept(
    listener: TcpListener,
    act: behaviour::Act,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
    tasks: Tasks,
) {
    let (clock, stop) = (Clock::system(), tasks.stop_token().clone());
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => continue,
            },
            () = stop.cancelled() => return,
        };
        let number = {
            let mut exchanges = exchanges.lock().unwrap();
            exchanges.push(Exchange::default());
            exchanges.len() - 1
        };
        let peer = Peer::new(stream, Arc::clone(&exchanges), number, clock.clone());
        let (acted, stop) = (act(peer), stop.clone());
        tasks.spawn("faulty connection", async move {
            tokio::select! {
                () = acted => {}
                () = stop.cancelled() => {}
            }
        });
    }
}

/// Fills the queue of a listener that accepts nothing: from then on the system drops what asks to connect.
async fn fill(address: SocketAddr) -> Vec<TcpStream> {
    let mut fillers = Vec::new();
    for _ in 0..64 {
        match Clock::system().timeout(Duration::from_millis(300), TcpStream::connect(address)).await {
            Some(connected) => fillers.push(connected.unwrap()),
            None => return fillers,
        }
    }
    panic!("the queue of a listener has no end here");
}
