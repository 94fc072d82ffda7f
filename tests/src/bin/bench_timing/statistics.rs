//! Whether two series of times differ.

use std::time::Duration;

use hub_core::random::Random;

/// Permutations of a test.
const EXCHANGES: u32 = 10_000;

/// The numbers below `count`, in an order by lot.
pub fn by_lot(count: usize, random: &Random) -> Vec<usize> {
    let mut drawn: Vec<(u64, usize)> = (0..count).map(|n| (u64::from_le_bytes(random.bytes()), n)).collect();
    drawn.sort_unstable();
    drawn.into_iter().map(|(_, n)| n).collect()
}

/// The time in the middle.
pub fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Returns the probability of a difference at least this large between two equal series, by a permutation test that
/// randomly swaps the two times of a round. Times above the 95th percentile count as that percentile, because they
/// come from the machine.
pub fn probability(times: &[Duration], others: &[Duration], random: &Random) -> f64 {
    let mut all: Vec<f64> = times.iter().chain(others).map(Duration::as_secs_f64).collect();
    all.sort_unstable_by(f64::total_cmp);
    let most = all.get(all.len() * 19 / 20).copied().unwrap_or_default();
    let capped = |time: &Duration| time.as_secs_f64().min(most);
    let differences: Vec<f64> =
        times.iter().zip(others).map(|(time, other)| capped(time) - capped(other)).collect();
    let seen = differences.iter().sum::<f64>().abs();
    let as_large = (0..EXCHANGES).filter(|_| exchanged(&differences, random) >= seen).count();
    let as_large = u32::try_from(as_large).unwrap_or(EXCHANGES);
    f64::from(as_large + 1) / f64::from(EXCHANGES + 1)
}

/// Returns the absolute sum of the differences after inverting a random half of the signs.
fn exchanged(differences: &[f64], random: &Random) -> f64 {
    let sums = differences.chunks(64).map(|some| {
        let lots = u64::from_le_bytes(random.bytes());
        let signed = some
            .iter()
            .enumerate()
            .map(|(n, difference)| if (lots >> n) & 1 == 1 { *difference } else { -difference });
        signed.sum::<f64>()
    });
    sums.sum::<f64>().abs()
}
