//! Times at which messages passed a process, by message number. Another process reads them over HTTP.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Higher numbers are not counted separately.
const LONGEST_COUNTED: u64 = 4_000_000;

/// Microseconds of the machine's clock, which all processes here share.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time, finer than milliseconds")]
pub fn now_us() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

/// Time of the first occurrence of each number, and counters of all occurrences.
#[derive(Debug, Default)]
pub struct Moments(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    first: Vec<u64>,
    seen: u64,
    /// Occurrences of a number after its first.
    repeated: u64,
}

impl Moments {
    /// Records that a number passed now; returns `false` if it has passed before.
    pub fn note(&self, number: u64) -> bool {
        let now = now_us();
        let mut table = self.table();
        table.seen += 1;
        let place = usize::try_from(number.min(LONGEST_COUNTED)).unwrap_or_default();
        if table.first.len() <= place {
            table.first.resize(place + 1, 0);
        }
        let first = table.first[place] == 0;
        if first {
            table.first[place] = now;
        } else {
            table.repeated += 1;
        }
        first
    }

    /// Returns the number of all occurrences, and of the repeated ones.
    pub fn counts(&self) -> (u64, u64) {
        let table = self.table();
        (table.seen, table.repeated)
    }

    pub fn reset(&self) {
        *self.table() = Table::default();
    }

    /// Encodes the times by number as little-endian `u64`; 0 means no time.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.table().first.iter().flat_map(|moment| moment.to_le_bytes()).collect()
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    pub fn from_bytes(bytes: &[u8]) -> Vec<u64> {
        bytes.chunks_exact(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap_or_default())).collect()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
