//! Keys that are heard at once, without a line's end.

#[cfg(unix)]
use rustix::{
    stdio::stdin,
    termios::{self, LocalModes, OptionalActions, Termios},
};
use tokio::sync::mpsc;

/// Keys that wait to be looked at.
#[cfg(unix)]
const AHEAD: usize = 16;

/// The keyboard; the terminal is as it was before when this is dropped.
pub struct Keys {
    pressed: mpsc::Receiver<u8>,
    #[cfg(unix)]
    _terminal: Unbuffered,
}

impl Keys {
    /// `None` when stdin is no terminal that allows it.
    #[cfg(unix)]
    pub fn listen() -> Option<Self> {
        let terminal = Unbuffered::begin()?;
        let (sender, pressed) = mpsc::channel(AHEAD);
        // A thread reads them, because stdin can only be waited for; it is left behind at the end.
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

    /// Waits for a key; for ever when there are no more.
    pub async fn next(&mut self) -> u8 {
        match self.pressed.recv().await {
            Some(key) => key,
            None => std::future::pending().await,
        }
    }
}

/// A terminal that hands over each key and shows none. Signals stay what they are: Ctrl-C interrupts.
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
        // A terminal that is gone needs nothing.
        let _ = termios::tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}
