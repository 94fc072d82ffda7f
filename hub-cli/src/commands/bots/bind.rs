//! `bots bind`: a code is shown until somebody scanned and confirmed it, and the bot is online.

use std::time::Duration;

use hub_core::{
    id::BotId,
    time::{Clock, Timestamp},
};
use serde_json::{Value, json};

use super::{
    code,
    view::{Age, View},
};
use crate::{
    args::BotsBindArgs,
    ask,
    commands::users::cell,
    exit::{Exit, Failure},
    printer::Printer,
    reach::{Binding, Reach, id_of},
    screen,
};

/// Of each state; the last two when there is something to say.
pub const FIELDS: [&str; 6] = ["status", "bind_id", "qr_text", "expires_at", "reason", "bot"];

/// How long one question to the hub may take; the bar goes on after it.
const LOOK: Duration = Duration::from_secs(1);
/// How long a bot may take from its login until it is online; it is bound either way.
const UNTIL_ONLINE: Duration = Duration::from_secs(20);

pub async fn run(args: BotsBindArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let bind = reach.start_bind(args.network.clone(), args.name.clone(), args.owner.as_deref()).await?;
    let mut flow = Flow::new(&reach, bind, &args, printer);
    let bot = flow.until_bound().await?;
    let (status, bot) = flow.until_online(bot).await?;
    flow.view.show_end(&status, bot)?;
    reach.close().await;
    Ok(())
}

struct Flow<'a> {
    reach: &'a Reach,
    bind: Binding,
    args: &'a BotsBindArgs,
    printer: &'a Printer,
    view: View<'a>,
    clock: Clock,
    began: Timestamp,
    /// The code that is shown, and since when.
    shown: Option<(String, Timestamp)>,
}

impl<'a> Flow<'a> {
    fn new(reach: &'a Reach, bind: Binding, args: &'a BotsBindArgs, printer: &'a Printer) -> Self {
        let clock = Clock::system();
        let (began, view) = (clock.now(), View::new(printer, args.invert));
        Self { reach, bind, args, printer, view, clock, began, shown: None }
    }

    /// Shows codes and states until the bind ends; gives the bot.
    async fn until_bound(&mut self) -> Result<Value, Failure> {
        let first = json!({ "status": "waiting", "qr_text": self.bind.started["qr_text"] });
        let mut last = self.show(&first, None)?;
        let until = self.began + self.args.wait;
        let mut number: Option<String> = None;
        loop {
            let step = self.reach.confirm_bind(&self.bind, number.take().as_deref(), LOOK).await?;
            last = self.show(&step, Some(&last))?;
            match last.0.as_str() {
                "confirmed" | "already_bound" => return Ok(step["bot"].clone()),
                "refused" => {
                    let why = screen::clean(&cell(&step, "reason"));
                    let what = format!("the chat network refused the login: {why}");
                    return Err(Failure::new(Exit::Failed, "UPSTREAM_ERROR", what));
                }
                "expired" => return Err(too_late()),
                "need_code" => number = Some(self.ask_number(&step).await?),
                _ => {}
            }
            if self.clock.now() >= until {
                return Err(too_late());
            }
        }
    }

    /// Shows what is new about a step: another code, another state; otherwise the bar goes on.
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
        let mut document = json!({ "status": step["status"], "bind_id": self.bind.started["bind_id"] });
        let waits = step["status"] == "waiting";
        for (name, value) in [
            ("qr_text", &step["qr_text"]),
            ("expires_at", if waits { &self.bind.started["expires_at"] } else { &Value::Null }),
            ("reason", &step["reason"]),
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
        let ends = self.bind.started["expires_at"].as_str().and_then(|at| at.parse().ok());
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
            let missing = Failure::usage("the phone shows a number, and nobody can be asked for it");
            return Err(missing.with_hint("add --code-stdin, and write the number to stdin"));
        }
        let why = if why.is_empty() { why } else { format!(" ({why})") };
        Printer::ready(&format!("the number that the phone shows{why}:"));
        let line = self.clock.timeout(self.age().left, ask::line()).await.ok_or_else(too_late)?;
        match line.ok().flatten().map(|line| line.trim().to_owned()) {
            Some(number) if !number.is_empty() => Ok(number),
            _ => Err(Failure::usage("no number came").with_hint("bind again, and type what the phone shows")),
        }
    }

    /// Follows the bot until it is online, or for a while; gives where it stands then.
    async fn until_online(&mut self, bot: Value) -> Result<(String, Value), Failure> {
        let id: BotId = id_of(&bot)?;
        let until = self.clock.now() + UNTIL_ONLINE;
        loop {
            let bot = self.reach.bot_document(id).await?;
            let status = cell(&bot, "status");
            let is_over = matches!(status.as_str(), "online" | "expired" | "error");
            if is_over || self.clock.now() >= until {
                if status == "online" {
                    self.view.show_time(&status, self.age());
                } else {
                    self.printer.note(&format!("it is bound, and {status} so far: hub-cli bots status {id}"));
                }
                return Ok((status, bot));
            }
            self.clock.sleep(super::LOOK).await;
        }
    }
}

fn too_late() -> Failure {
    Failure::timed_out("nobody confirmed the code in time").with_hint("hub-cli bots bind")
}
