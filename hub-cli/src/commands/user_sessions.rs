//! `users sessions list`, `users sessions revoke`.

use serde_json::{Value, json};

use super::users::cell;
use crate::{
    args::{UserSessionsCommand, UserSessionsListArgs, UserSessionsRevokeArgs},
    exit::Failure,
    printer::{List, Printer},
    reach::Reach,
};

pub const FIELDS: [&str; 6] = ["id", "created_at", "last_seen_at", "ip", "user_agent", "current"];
pub const REVOKE_FIELDS: [&str; 2] = ["user", "ended"];

pub async fn run(command: UserSessionsCommand, local: bool, printer: &Printer) -> Result<(), Failure> {
    match command {
        UserSessionsCommand::List(args) => list(args, local, printer).await,
        UserSessionsCommand::Revoke(args) => revoke(args, local, printer).await,
    }
}

async fn list(args: UserSessionsListArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let mut page = reach.sessions(&args.user, &args.page).await?;
    reach.close().await;
    let items = page["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let row = |session: &Value| {
        ["id", "ip", "user_agent", "created_at", "last_seen_at"].map(|field| cell(session, field)).to_vec()
    };
    printer.list(List {
        columns: &["SESSION ID", "FROM", "PROGRAM", "SINCE", "LAST SEEN"],
        rows: items.iter().map(row).collect(),
        items,
        next_cursor: page["next_cursor"].as_str().map(str::to_owned),
        empty: "this user is signed in nowhere",
    })
}

async fn revoke(args: UserSessionsRevokeArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let name = cell(&reach.user(&args.user).await?, "username");
    let what = match args.session {
        Some(session) => format!("{name} is signed out of the session {session}"),
        None => format!("{name} is signed out everywhere"),
    };
    if !args.confirm.is_meant(&what, printer).await? {
        reach.close().await;
        return printer
            .one(json!({ "user": args.user, "ended": 0 }), &format!("{what}; nothing was changed"));
    }
    let done = reach.end_sessions(&args.user, args.session).await?;
    reach.close().await;
    let document = json!({ "user": args.user, "ended": done["ended"] });
    printer.one(document, &format!("{} sessions have ended", cell(&done, "ended")))
}
