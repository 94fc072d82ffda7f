//! The measurements on one database, in order.

use std::{io::Write, path::Path, time::Duration};

use hub_core::time::Clock;

use crate::{
    Result,
    flow::float,
    hub::Hub,
    options::{Database, Options},
    report::Table,
    stage::{Stage, WARM_UP_SECONDS},
};

/// Starts of which the middle one counts.
const STARTS: usize = 5;

/// Measures one database.
pub async fn measure(options: &Options, program: &Path, database: Database) -> Result<Table> {
    let folder = tempfile::tempdir()?;
    let (mut stage, mut hub) = Stage::open(options, program, database, folder.path()).await?;
    let first_start = hub.ready_after;
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        hub = stage.restart(hub).await?;
        starts.push(hub.ready_after);
    }
    starts.sort();
    Clock::system().sleep(Duration::from_secs(3)).await;
    let idle_rss = hub.rss();
    if options.attach {
        writeln!(std::io::stdout(), "the hub is process {}; press Enter", hub.process.id)?;
        std::io::stdin().read_line(&mut String::new())?;
    }
    let size = stage.setup.database_size();
    let rate = options.rate_on(database);
    let held = if rate > 0 {
        let flow = stage.hold(&hub, rate, options.seconds).await?;
        Some((flow, stage.refer(rate * options.seconds, Some(rate))?))
    } else {
        None
    };
    let saturated = if options.backlog > 0 {
        // So many posts as take seconds: in less, what else the machine does decides.
        Some((stage.saturate(&hub).await?, stage.refer(options.backlog * 5, None)?))
    } else {
        None
    };
    // The log of the database is in its file when the hub has ended.
    hub = stage.restart(hub).await?;
    let stored = held.iter().map(|(flow, _)| flow.messages + rate * WARM_UP_SECONDS).sum::<u64>()
        + saturated.iter().map(|(flow, _)| flow.messages).sum::<u64>();
    let grown = stage.setup.database_size().zip(size).map(|(now, before)| now.saturating_sub(before));
    let disk = grown.map(|bytes| float(bytes) / float(stored));
    let with_plugin = if options.plugin && options.backlog > 0 {
        Some(stage.saturate_with_plugin(&hub).await?)
    } else {
        None
    };
    let replies = match options.reply_rate {
        0 => None,
        rate => {
            let flow = stage.reply(&hub, rate).await?;
            let bare = stage.refer(flow.messages, Some(rate))?;
            Some((flow, bare))
        }
    };
    let queue = if options.queued > 0 {
        // Memory is looked at in a process that did nothing else.
        let fresh: Hub = stage.restart(hub).await?;
        Some(stage.queue(fresh).await?)
    } else {
        None
    };
    let start = starts[STARTS / 2];
    Ok(Table {
        database,
        rate,
        idle_rss,
        first_start,
        start,
        held,
        saturated,
        disk,
        with_plugin,
        replies,
        queue,
    })
}
