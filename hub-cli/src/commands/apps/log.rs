//! `apps events` and `apps api-logs`, as pages and as they come.

use std::{collections::HashMap, time::Duration};

use hub_core::{page::MAX_LIMIT, time::Clock};
use serde_json::Value;

use super::words;
use crate::{
    args::{AppsLogArgs, PageArgs},
    exit::Failure,
    printer::{List, Printer, Tone},
    reach::{AppLog, AppPlace, Reach},
    screen,
};

pub const EVENT_FIELDS: [&str; 12] = [
    "id",
    "trace_id",
    "event_type",
    "event",
    "status",
    "attempts",
    "next_attempt_at",
    "response_status",
    "response_body",
    "error",
    "duration_ms",
    "created_at",
];
pub const CALL_FIELDS: [&str; 9] = [
    "id",
    "trace_id",
    "method",
    "path",
    "request_body",
    "status_code",
    "response_body",
    "duration_ms",
    "created_at",
];

/// Time between two looks.
const LOOK: Duration = Duration::from_secs(1);
/// Pages that one look goes back for what came since the last one; what is older than these is not shown.
const MOST_PAGES: usize = 20;

pub async fn run(log: AppLog, args: AppsLogArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let place = reach.app_place(&args.app, &args.bot).await?;
    if args.follow {
        return follow(&reach, log, place, printer).await;
    }
    let mut page = reach.app_log(log, place, &args.page).await?;
    reach.close().await;
    let items = page["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let (columns, empty): (&[&str], _) = match log {
        AppLog::Events => {
            (&["EVENT ID", "AT", "KIND", "STATUS", "ATTEMPTS", "ANSWER", "ERROR"], "it was told nothing yet")
        }
        AppLog::Calls => (&["CALL ID", "AT", "CALL", "STATUS", "MS", "TRACE ID"], "it asked nothing yet"),
    };
    printer.list(List {
        columns,
        rows: items.iter().map(|item| row(log, item)).collect(),
        items,
        next_cursor: page["next_cursor"].as_str().map(str::to_owned),
        empty,
    })
}

fn row(log: AppLog, item: &Value) -> Vec<String> {
    let names: &[&str] = match log {
        AppLog::Events => {
            &["id", "created_at", "event_type", "status", "attempts", "response_status", "error"]
        }
        AppLog::Calls => &["id", "created_at", "path", "status_code", "duration_ms", "trace_id"],
    };
    let mut cells: Vec<String> = names.iter().map(|name| words(item, name)).collect();
    if log == AppLog::Calls {
        cells[2] = format!("{} {}", words(item, "method"), cells[2]);
    }
    cells
}

/// Shows what comes, oldest first, and events again whenever their state changes.
async fn follow(reach: &Reach, log: AppLog, place: AppPlace, printer: &Printer) -> Result<(), Failure> {
    let clock = Clock::system();
    let newest = reach.app_log(log, place, &PageArgs { limit: MAX_LIMIT, cursor: None }).await?;
    let mut known = states(newest["items"].as_array().map(Vec::as_slice).unwrap_or_default());
    Printer::ready("ready");
    loop {
        clock.sleep(LOOK).await;
        let items = since(reach, log, place, &known).await?;
        for item in items.iter().rev() {
            if known.get(&id(item)) != Some(&state(item)) {
                show(log, item, printer)?;
            }
        }
        // What was not seen in this look is older than it, and done.
        known = states(&items);
    }
}

/// The newest items, newest first, back to a page that has nothing but known ones.
async fn since(
    reach: &Reach,
    log: AppLog,
    place: AppPlace,
    known: &HashMap<String, String>,
) -> Result<Vec<Value>, Failure> {
    let (mut items, mut cursor) = (Vec::new(), None);
    for _ in 0..MOST_PAGES {
        let mut page = reach.app_log(log, place, &PageArgs { limit: MAX_LIMIT, cursor }).await?;
        let found = page["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let reached = found.last().is_none_or(|oldest| known.contains_key(&id(oldest)));
        items.extend(found);
        cursor = page["next_cursor"].as_str().map(str::to_owned);
        if reached || cursor.is_none() {
            break;
        }
    }
    Ok(items)
}

fn states(items: &[Value]) -> HashMap<String, String> {
    items.iter().map(|item| (id(item), state(item))).collect()
}

fn id(item: &Value) -> String {
    words(item, "id")
}

/// What changes about an event; calls have no such fields.
fn state(item: &Value) -> String {
    format!("{} {}", words(item, "status"), words(item, "attempts"))
}

fn show(log: AppLog, item: &Value, printer: &Printer) -> Result<(), Failure> {
    let text = match log {
        AppLog::Events => {
            let status = words(item, "status");
            let tone = match status.as_str() {
                "delivered" => Tone::Good,
                "failed" => Tone::Bad,
                _ => Tone::Doubtful,
            };
            let data = screen::clean(&item["event"]["data"].to_string());
            let error = screen::clean(&words(item, "error"));
            format!(
                "{}  {}  {}  {}  {}  {error}",
                words(item, "created_at"),
                printer.paint(&format!("{status:<9}"), tone),
                words(item, "id"),
                words(item, "event_type"),
                screen::fit(&data, 80),
            )
        }
        AppLog::Calls => format!(
            "{}  {}  {} {}  {}",
            words(item, "created_at"),
            words(item, "status_code"),
            words(item, "method"),
            screen::clean(&words(item, "path")),
            screen::fit(&screen::clean(&words(item, "request_body")), 80),
        ),
    };
    printer.one(item.clone(), text.trim_end())
}
