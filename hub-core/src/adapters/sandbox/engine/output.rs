//! Recorded effects of a hook. They are kept outside the engine, so that they survive a run that has to be stopped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::{
    Deadline,
    hook::{
        LogLevel, LogLine, MAX_FETCHES, MAX_LOG_BYTES, MAX_LOG_LINES, MAX_REPLIES, MAX_REPLY_TEXT,
        MAX_RESULT, Reply,
    },
};

/// The replies, log lines and fetches of one run, within their caps. Clones share them.
#[derive(Debug, Clone)]
pub(in super::super) struct Output(Arc<Mutex<Done>>);

#[derive(Debug, Default)]
pub(in super::super) struct Done {
    pub(in super::super) replies: Vec<Reply>,
    pub(in super::super) skipped: bool,
    pub(in super::super) logs: Vec<LogLine>,
    reply_bytes: usize,
    log_bytes: usize,
    fetches: u32,
    answers: u32,
}

impl Output {
    pub(in super::super) fn new() -> Self {
        Self(Arc::default())
    }

    /// Takes everything recorded so far and leaves the output empty.
    pub(in super::super) fn take(&self) -> Done {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Done> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn skip(&self) {
        self.lock().skipped = true;
    }

    /// Adds a reply. Above [`MAX_REPLIES`] it is dropped with a log line.
    ///
    /// # Errors
    /// Error for the plugin if this reply, or all replies together, are too long.
    pub(super) fn reply(&self, reply: Reply, deadline: Deadline) -> Result<(), &'static str> {
        let bytes = match &reply {
            Reply::Text(text) if text.len() > MAX_REPLY_TEXT => {
                return Err("a reply's text is at most 64 KiB");
            }
            Reply::Text(text) | Reply::DataUri(text) => text.len(),
            Reply::File { base64, filename } => base64.len() + filename.len(),
            Reply::Forward => 0,
        };
        let mut done = self.lock();
        if done.replies.len() == MAX_REPLIES {
            drop(done);
            self.log(LogLevel::Warn, "a reply was dropped: there are 10 already".to_owned(), deadline);
            return Ok(());
        }
        if done.reply_bytes + bytes > MAX_RESULT {
            return Err("replies are larger than 512 KiB");
        }
        done.reply_bytes += bytes;
        done.replies.push(reply);
        Ok(())
    }

    /// Adds a log line, truncated to the remaining space.
    pub(super) fn log(&self, level: LogLevel, mut text: String, deadline: Deadline) {
        let mut done = self.lock();
        let room = MAX_LOG_BYTES - done.log_bytes;
        if done.logs.len() == MAX_LOG_LINES || room == 0 {
            return;
        }
        text.truncate(text.floor_char_boundary(room));
        done.log_bytes += text.len();
        let at_ms = u64::try_from(deadline.elapsed().as_millis()).unwrap_or(u64::MAX);
        done.logs.push(LogLine { level, at_ms, text });
    }

    /// Returns the number of a new fetch; `None` when [`MAX_FETCHES`] are used up.
    pub(super) fn fetch(&self) -> Option<u32> {
        let mut done = self.lock();
        let number = done.fetches;
        (number < MAX_FETCHES).then(|| {
            done.fetches += 1;
            number
        })
    }

    /// Whether a fetch is still without an answer.
    pub(super) fn awaits_answers(&self) -> bool {
        let done = self.lock();
        done.answers < done.fetches
    }

    pub(super) fn answered(&self) {
        self.lock().answers += 1;
    }

    pub(super) fn reply_bytes(&self) -> usize {
        self.lock().reply_bytes
    }
}
