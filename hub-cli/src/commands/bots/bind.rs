//! `bots bind`: shows a code until it is scanned and confirmed, and the bot is online.

use std::time::Duration;

use hub_core::{
    id::BotId,
    time::{Clock, Timestamp},
};
use serde_json::{Value, json};

use super::{
    code,
    progress::{Age, View},
};
use crate::{
    args::BotsBindArgs,
    ask,
    client::{Client, id_of},
    context::Context,
    document::{cell, without_nulls},
    exit::{Exit, Failure},
    poll::every,
    printer::Printer,
    screen,
};

/// Timeout of one request for the state; the bar is updated after it.
const STATE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum time from the login until the bot is online; it is bound in either case.
const ONLINE_TIMEOUT: Duration = Duration::from_secs(20);

pub async fn run(args: BotsBindArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let owner = client.as_user("--owner", args.owner.as_deref()).await?;
    let body = without_nulls(&json!({ "network": args.network, "name": args.name }));
    let started = owner.post("/api/bots/bind/start", &body).await?;
    let mut flow = Flow::new(&owner, started, &args, &cx.printer);
    let bot = flow.until_bound().await?;
    let (status, bot) = flow.until_online(bot).await?;
    flow.view.show_end(&status, bot)?;
    Ok(())
}

struct Flow<'a> {
    client: &'a Client,
    started: Value,
    args: &'a BotsBindArgs,
    printer: &'a Printer,
    view: View<'a>,
    clock: Clock,
    began: Timestamp,
    /// The shown code, and its time.
    shown: Option<(String, Timestamp)>,
}

impl<'a> Flow<'a> {
    fn new(client: &'a Client, started: Value, args: &'a BotsBindArgs, printer: &'a Printer) -> Self {
        let clock = Clock::system();
        let (began, view) = (clock.now(), View::new(printer, args.invert));
        Self { client, started, args, printer, view, clock, began, shown: None }
    }

    /// Shows codes and states until the bind ends; returns the bot.
    async fn until_bound(&mut self) -> Result<Value, Failure> {
        let first = json!({ "status": "waiting", "qr_text": self.started["qr_text"] });
        let mut last = self.show(&first, None)?;
        let until = self.began + self.args.wait;
        let mut number: Option<String> = None;
        loop {
            let step = self.confirm(number.take()).await?;
            last = self.show(&step, Some(&last))?;
            match last.0.as_str() {
                "confirmed" | "already_bound" => return Ok(step["bot"].clone()),
                "refused" => {
                    let why = screen::clean(&cell(&step, "reason"));
                    let what = format!("the chat network rejected the login: {why}");
                    return Err(Failure::new(Exit::Failed, "UPSTREAM_ERROR", what));
                }
                "expired" => return Err(not_confirmed()),
                "need_code" => number = Some(self.ask_number(&step).await?),
                _ => {}
            }
            if self.clock.now() >= until {
                return Err(not_confirmed());
            }
        }
    }

    /// The next step of the bind: `status`, `qr_text`, `reason`, `bot`.
    async fn confirm(&self, code: Option<String>) -> Result<Value, Failure> {
        let wait_ms = u64::try_from(STATE_TIMEOUT.as_millis()).unwrap_or(u64::MAX);
        let body = json!({ "bind_id": self.started["bind_id"], "verify_code": code, "wait_ms": wait_ms });
        self.client.post("/api/bots/bind/confirm", &without_nulls(&body)).await
    }

    /// Shows a new code or state; otherwise updates the bar.
    fn show(&mut self, step: &Value, last: Option<&(String, String)>) -> Result<(String, String), Failure> {
        let (status, reason) = (cell(step, "status"), cell(step, "reason"));
        let mut is_new = last.is_none_or(|last| *last != (status.clone(), reason.clone()));
        if let Some(link) = step["qr_text"].as_str()
            && self.shown.as_ref().is_none_or(|(shown, _)| shown != link)
        {
            self.shown = Some((link.to_owned(), self.clock.now()));
            is_new = true;
            if let Some(path) = &self.args.png {
                code::write_png(path, link)?;
            }
            self.view.show_code(link)?;
        }
        if is_new {
            let document = self.document(step);
            self.view.show_state(&status, self.age(), document)?;
        } else {
            self.view.show_time(&status, self.age());
        }
        Ok((status, reason))
    }

    fn document(&self, step: &Value) -> Value {
        let mut document = json!({ "status": step["status"], "bind_id": self.started["bind_id"] });
        let waits = step["status"] == "waiting";
        for (name, value) in [
            ("qr_text", &step["qr_text"]),
            ("expires_at", if waits { &self.started["expires_at"] } else { &Value::Null }),
            ("reason", &step["reason"]),
            ("reason_cause", &step["reason_cause"]),
            ("bot", &step["bot"]),
        ] {
            if !value.is_null() {
                document[name] = value.clone();
            }
        }
        document
    }

    fn age(&self) -> Age {
        let now = self.clock.now();
        let ends = self.started["expires_at"].as_str().and_then(|at| at.parse().ok());
        let ends: Timestamp = ends.unwrap_or(now).min(self.began + self.args.wait);
        Age {
            of_code: self.shown.as_ref().map(|(_, at)| now.since(*at)).unwrap_or_default(),
            left: ends.since(now),
            whole: ends.since(self.began),
        }
    }

    /// The number that the phone shows.
    async fn ask_number(&self, step: &Value) -> Result<String, Failure> {
        let why = screen::clean(&cell(step, "reason"));
        if !self.args.code_stdin && !self.printer.may_ask() {
            let missing = Failure::usage("the phone shows a number, which has to be entered");
            return Err(missing.with_hint("add --code-stdin and write the number to stdin"));
        }
        let why = if why.is_empty() { why } else { format!(" ({why})") };
        Printer::ready(&format!("the number that the phone shows{why}:"));
        let line = self.clock.timeout(self.age().left, ask::line()).await.ok_or_else(not_confirmed)?;
        match line.ok().flatten().map(|line| line.trim().to_owned()) {
            Some(number) if !number.is_empty() => Ok(number),
            _ => Err(Failure::usage("no number was entered")
                .with_hint("bind again, and type the number that the phone shows")),
        }
    }

    /// Waits until the bot is online, up to a timeout; returns its status.
    async fn until_online(&mut self, bot: Value) -> Result<(String, Value), Failure> {
        let id: BotId = id_of(&bot)?;
        let until = self.clock.instant() + ONLINE_TIMEOUT;
        let (status, bot) = every(super::POLL_INTERVAL, async || {
            let bot = self.client.get(&super::path(id)).await?;
            let status = cell(&bot, "status");
            let is_over = matches!(status.as_str(), "online" | "expired" | "error");
            Ok((is_over || self.clock.instant() >= until).then_some((status, bot)))
        })
        .await?;
        if status == "online" {
            self.view.show_time(&status, self.age());
        } else {
            self.printer.note(&format!("it is bound; current status: {status} (hub-cli bots status {id})"));
        }
        Ok((status, bot))
    }
}

fn not_confirmed() -> Failure {
    Failure::timed_out("the code was not confirmed in time").with_hint("hub-cli bots bind")
}
