//! `apps events` and `apps api-logs`, as pages and as a stream.

use std::{collections::HashMap, time::Duration};

use hub_core::page::MAX_LIMIT;
use serde_json::Value;

use crate::{
    args::{AppsLogArgs, PageArgs},
    client::{Client, InstallationRef},
    context::Context,
    document::{next_cursor, take_items, words},
    exit::Failure,
    poll::every,
    printer::{List, Printer, Tone},
    screen,
};

const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of pages read per poll; older entries are not shown.
const MAX_PAGES: usize = 20;

/// A log of an installed app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    /// Events that were sent to the app.
    Events,
    /// Calls that the app made.
    Calls,
}

impl Log {
    fn path(self, place: InstallationRef) -> String {
        let name = match self {
            Self::Events => "events",
            Self::Calls => "api-logs",
        };
        format!("{}/{name}", place.path())
    }
}

pub async fn run(log: Log, args: AppsLogArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.list.hub).await?;
    let place = client.installation_ref(&args.app, &args.bot).await?;
    if args.follow {
        return follow(&client, log, place, &cx.printer).await;
    }
    let page = client.list(&log.path(place), &[], &args.list.page).await?;
    let (columns, empty): (&[&str], _) = match log {
        Log::Events => {
            (&["EVENT ID", "AT", "KIND", "STATUS", "ATTEMPTS", "ANSWER", "ERROR"], "no events yet")
        }
        Log::Calls => (&["CALL ID", "AT", "CALL", "STATUS", "MS", "TRACE ID"], "no calls yet"),
    };
    cx.printer.list(List::of(page, columns, |item| row(log, item), empty))
}

fn row(log: Log, item: &Value) -> Vec<String> {
    let names: &[&str] = match log {
        Log::Events => &["id", "created_at", "event_type", "status", "attempts", "response_status", "error"],
        Log::Calls => &["id", "created_at", "path", "status_code", "duration_ms", "trace_id"],
    };
    let mut cells: Vec<String> = names.iter().map(|name| words(item, name)).collect();
    if log == Log::Calls {
        cells[2] = format!("{} {}", words(item, "method"), cells[2]);
    }
    cells
}

/// Shows new entries, oldest first, and events again whenever their state changes.
async fn follow(client: &Client, log: Log, place: InstallationRef, printer: &Printer) -> Result<(), Failure> {
    let newest = client.list(&log.path(place), &[], &PageArgs { limit: MAX_LIMIT, cursor: None }).await?;
    let mut known = states(newest["items"].as_array().map(Vec::as_slice).unwrap_or_default());
    Printer::ready("ready");
    every(POLL_INTERVAL, async || {
        let items = since(client, log, place, &known).await?;
        for item in items.iter().rev() {
            if known.get(&id(item)) != Some(&state(item)) {
                show(log, item, printer)?;
            }
        }
        // Entries that were not listed this time are older, and completed.
        known = states(&items);
        Ok(None)
    })
    .await
}

/// The newest items, newest first, back to a page of known ones.
async fn since(
    client: &Client,
    log: Log,
    place: InstallationRef,
    known: &HashMap<String, String>,
) -> Result<Vec<Value>, Failure> {
    let (mut items, mut cursor) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let mut page = client.list(&log.path(place), &[], &PageArgs { limit: MAX_LIMIT, cursor }).await?;
        cursor = next_cursor(&page);
        let found = take_items(&mut page);
        let reached = found.last().is_none_or(|oldest| known.contains_key(&id(oldest)));
        items.extend(found);
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

/// The fields of an event that change; calls have none.
fn state(item: &Value) -> String {
    format!("{} {}", words(item, "status"), words(item, "attempts"))
}

fn show(log: Log, item: &Value, printer: &Printer) -> Result<(), Failure> {
    let text = match log {
        Log::Events => {
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
        Log::Calls => format!(
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
