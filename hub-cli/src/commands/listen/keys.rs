//! Single key presses, without a line end.

#[cfg(unix)]
use rustix::{
    stdio::stdin,
    termios::{self, LocalModes, OptionalActions, Termios},
};
use tokio::sync::mpsc;

/// Capacity for unread keys.
#[cfg(unix)]
const READ_AHEAD: usize = 16;

/// The keyboard; the terminal is restored when this is dropped.
pub struct Keys {
    pressed: mpsc::Receiver<u8>,
    #[cfg(unix)]
    _terminal: Unbuffered,
}

impl Keys {
    /// `None` when stdin is not a suitable terminal.
    #[cfg(unix)]
    pub fn listen() -> Option<Self> {
        let terminal = Unbuffered::begin()?;
        let (sender, pressed) = mpsc::channel(READ_AHEAD);
        // A thread reads them, because reading stdin blocks; it is detached.
        std::thread::spawn(move || {
            let mut key = [0];
            while let Ok(1) = std::io::Read::read(&mut std::io::stdin(), &mut key) {
                if sender.blocking_send(key[0]).is_err() {
                    return;
                }
            }
        });
        Some(Self { pressed, _terminal: terminal })
    }

    /// Nowhere else.
    #[cfg(not(unix))]
    pub fn listen() -> Option<Self> {
        None
    }

    /// Waits for a key; forever when there are no more.
    pub async fn next(&mut self) -> u8 {
        match self.pressed.recv().await {
            Some(key) => key,
            None => std::future::pending().await,
        }
    }
}

/// A terminal without line buffering and echo. Signals are unchanged: Ctrl-C interrupts.
#[cfg(unix)]
struct Unbuffered {
    before: Termios,
}

#[cfg(unix)]
impl Unbuffered {
    fn begin() -> Option<Self> {
        let before = termios::tcgetattr(stdin()).ok()?;
        let mut now = before.clone();
        now.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        termios::tcsetattr(stdin(), OptionalActions::Now, &now).ok()?;
        Some(Self { before })
    }
}

#[cfg(unix)]
impl Drop for Unbuffered {
    fn drop(&mut self) {
        // The terminal may be closed already.
        let _ = termios::tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}
