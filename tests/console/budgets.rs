//! Budgets of pages, which do not grow with the number of messages.

use super::{Demo, run, stock::Stock};

#[tokio::test]
#[ignore = "alone on the machine: .ci/run does it after the other tests"]
async fn pages_keep_their_budgets_with_a_hundred_thousand_messages() {
    let (many, few) = (Demo::start().await, Demo::start().await);
    let (stock, little) = (Stock::fill(&many, 100_000).await, Stock::fill(&few, 6_000).await);
    let more = [("FEW_URL", few.url.clone()), ("PLACES", stock.places()), ("FEW_PLACES", little.places())];
    if let Some((_, report)) = run("budgets.mjs", &many, &more).await {
        // The tables of tests/BENCHMARKS.md.
        println!("{report}");
    }
}
