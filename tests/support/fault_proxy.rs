//! A TCP proxy that misbehaves on command: between a hub and its database, a receiver or the chat network.
//!
//! The fault of each direction can be changed at any time and holds for connections that are open and for
//! those that come later.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use hub_core::{tasks::Tasks, time::Clock};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixStream},
    sync::watch,
};

/// Bytes that are read at once, and so the most that is on its way in one direction of a connection.
const CHUNK: usize = 64 * 1024;

/// Destination of connections.
#[derive(Debug, Clone)]
pub enum Target {
    /// A port.
    Tcp(SocketAddr),
    /// A socket file: PostgreSQL's, for example, which lies in `<folder>/.s.PGSQL.5432`.
    Unix(PathBuf),
}

/// Fault of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// Every chunk of at most 64 KiB is held for this long; the next one is read afterwards.
    Delay(Duration),
    /// So many bytes per second, in small pieces; at least 1.
    Throttle(u32),
    /// Connections are cut with RST, whichever direction it is set on.
    Reset,
    /// The reader sees the end of the stream (FIN); what is sent to it afterwards is lost. The other direction
    /// goes on. This cannot be undone for a connection.
    HalfClose,
    /// Nothing passes, nothing is lost and no one is notified: bytes wait until another fault is set.
    Blackhole,
    /// One bit is flipped in every so-manieth byte, counted per connection; at least 1.
    Corrupt(u64),
}

/// Direction of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From anyone who connected to the target.
    Up,
    /// From the target back.
    Down,
}

#[derive(Debug, Clone, Copy, Default)]
struct Faults {
    up: Fault,
    down: Fault,
}

impl Faults {
    fn of(self, direction: Direction) -> Fault {
        match direction {
            Direction::Up => self.up,
            Direction::Down => self.down,
        }
    }

    fn resets(self) -> bool {
        self.up == Fault::Reset || self.down == Fault::Reset
    }
}

#[derive(Debug, Default)]
struct Counters {
    accepted: AtomicUsize,
    open: AtomicUsize,
    up: AtomicU64,
    down: AtomicU64,
}

/// A running proxy. It ends, and cuts its connections, when it is dropped.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    faults: watch::Sender<Faults>,
    counters: Arc<Counters>,
    tasks: Tasks,
}

impl FaultProxy {
    /// Opens a port on loopback that forwards to `target`, without a fault.
    pub async fn open(target: Target) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (faults, heard) = watch::channel(Faults::default());
        let (counters, tasks) = (Arc::<Counters>::default(), Tasks::new());
        let accept = accept(listener, target, heard, Arc::clone(&counters), tasks.clone());
        tasks.spawn("fault proxy", accept);
        Self { address, faults, counters, tasks }
    }

    /// Address of the proxy, to connect to instead of the target.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the fault of both directions.
    pub fn set(&self, fault: Fault) {
        self.faults.send_replace(Faults { up: fault, down: fault });
    }

    /// Sets the fault of one direction.
    pub fn set_one(&self, direction: Direction, fault: Fault) {
        self.faults.send_modify(|faults| match direction {
            Direction::Up => faults.up = fault,
            Direction::Down => faults.down = fault,
        });
    }

    /// Connections taken so far.
    pub fn accepted(&self) -> usize {
        self.counters.accepted.load(Ordering::SeqCst)
    }

    /// Connections that are open now.
    pub fn open_connections(&self) -> usize {
        self.counters.open.load(Ordering::SeqCst)
    }

    /// Bytes passed on so far.
    pub fn passed(&self, direction: Direction) -> u64 {
        self.counters.of(direction).load(Ordering::SeqCst)
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

impl Counters {
    fn of(&self, direction: Direction) -> &AtomicU64 {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }
}

/// Counts a connection for as long as it is open.
struct Open(Arc<Counters>);

impl Open {
    fn count(counters: &Arc<Counters>) -> Self {
        counters.accepted.fetch_add(1, Ordering::SeqCst);
        counters.open.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(counters))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn accept(
    listener: TcpListener,
    target: Target,
    faults: watch::Receiver<Faults>,
    counters: Arc<Counters>,
    tasks: Tasks,
) {
    let stop = tasks.stop_token().clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        let Ok((client, _)) = accepted else { continue };
        let open = Open::count(&counters);
        let (target, faults, stop) = (target.clone(), faults.clone(), stop.clone());
        tasks.spawn("proxied connection", async move {
            let link = Link { faults, counters: Arc::clone(&open.0) };
            tokio::select! {
                () = link.run(client, &target) => {}
                () = stop.cancelled() => {}
            }
            drop(open);
        });
    }
}

/// One connection.
struct Link {
    faults: watch::Receiver<Faults>,
    counters: Arc<Counters>,
}

impl Link {
    async fn run(&self, mut client: TcpStream, target: &Target) {
        let _ = client.set_nodelay(true);
        if self.faults.borrow().resets() {
            let _ = client.set_zero_linger();
            return;
        }
        // A target that is not there looks like one that hangs up.
        let cut = match target {
            Target::Tcp(address) => {
                let Ok(mut server) = TcpStream::connect(address).await else { return };
                let _ = server.set_nodelay(true);
                let cut = self.relay(&mut client, &mut server).await;
                if cut {
                    let _ = server.set_zero_linger();
                }
                cut
            }
            Target::Unix(path) => {
                let Ok(mut server) = UnixStream::connect(path).await else { return };
                self.relay(&mut client, &mut server).await
            }
        };
        if cut {
            let _ = client.set_zero_linger();
        }
    }

    /// Passes bytes on until both sides are done; `true` when the connection is to be cut.
    async fn relay<S: AsyncRead + AsyncWrite + Unpin>(&self, client: &mut TcpStream, server: &mut S) -> bool {
        let mut faults = self.faults.clone();
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = tokio::io::split(server);
        let both = async {
            let up = self.pump(Direction::Up, from_client, to_server);
            let down = self.pump(Direction::Down, from_server, to_client);
            tokio::join!(up, down);
        };
        tokio::select! {
            () = both => false,
            // An error means that the proxy is gone.
            cut = faults.wait_for(|faults| faults.resets()) => cut.is_ok(),
        }
    }

    /// Passes one direction on until it ends on either side.
    async fn pump(
        &self,
        direction: Direction,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
    ) {
        let mut faults = self.faults.clone();
        let mut buffer = vec![0; CHUNK];
        let mut passed = 0;
        loop {
            // Bytes that no one may have are not even read.
            let fault = match faults.wait_for(|faults| faults.of(direction) != Fault::Blackhole).await {
                Ok(faults) => faults.of(direction),
                Err(_) => return,
            };
            if fault == Fault::HalfClose {
                let _ = to.shutdown().await;
                let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
                return;
            }
            let read = tokio::select! {
                read = from.read(&mut buffer) => read,
                _ = faults.changed() => continue,
            };
            let Ok(length @ 1..) = read else { break };
            let chunk = &mut buffer[..length];
            // What came in while the fault changed is treated as the new one says.
            let fault = faults.borrow_and_update().of(direction);
            if !self.pass(direction, fault, chunk, &mut passed, &mut faults, &mut to).await {
                break;
            }
        }
        let _ = to.shutdown().await;
    }

    /// Passes one chunk on; `false` when no one takes it.
    async fn pass(
        &self,
        direction: Direction,
        fault: Fault,
        chunk: &mut [u8],
        passed: &mut u64,
        faults: &mut watch::Receiver<Faults>,
        to: &mut (impl AsyncWrite + Unpin),
    ) -> bool {
        let clock = Clock::system();
        let mut piece = chunk.len();
        let mut pause = Duration::ZERO;
        match fault {
            Fault::Delay(delay) => clock.sleep(delay).await,
            Fault::Corrupt(every) => {
                for (byte, number) in chunk.iter_mut().zip(*passed..) {
                    if (number + 1) % every.max(1) == 0 {
                        *byte ^= 0x10;
                    }
                }
            }
            Fault::Throttle(rate) => {
                // Twenty pieces a second, or one byte at a time.
                let rate = rate.max(1);
                piece = (rate / 20).max(1) as usize;
                pause = Duration::from_secs(1) / (rate / u32::try_from(piece).unwrap_or(1)).max(1);
            }
            Fault::Blackhole => {
                // It was set while the bytes came in; they go on when it is lifted.
                if faults.wait_for(|faults| faults.of(direction) != Fault::Blackhole).await.is_err() {
                    return false;
                }
            }
            Fault::None | Fault::Reset | Fault::HalfClose => {}
        }
        for piece in chunk.chunks(piece) {
            if to.write_all(piece).await.is_err() {
                return false;
            }
            *passed += piece.len() as u64;
            self.counters.of(direction).fetch_add(piece.len() as u64, Ordering::SeqCst);
            // A throttle that was lifted does not hold what is left.
            if !pause.is_zero() && faults.borrow().of(direction) == fault {
                clock.sleep(pause).await;
            }
        }
        true
    }
}
