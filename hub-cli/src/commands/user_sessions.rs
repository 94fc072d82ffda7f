//! `users sessions list`, `users sessions revoke`.

use serde_json::{Value, json};

use crate::{
    args::{UserSessionsCommand, UserSessionsListArgs, UserSessionsRevokeArgs},
    context::Context,
    document::{cell, cells},
    exit::Failure,
    printer::List,
};

pub async fn run(command: UserSessionsCommand, cx: &Context) -> Result<(), Failure> {
    match command {
        UserSessionsCommand::List(args) => list(args, cx).await,
        UserSessionsCommand::Revoke(args) => revoke(args, cx).await,
    }
}

async fn list(args: UserSessionsListArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.list.hub).await?;
    let path = format!("{}/sessions", client.user_path(&args.user).await?);
    let page = client.list(&path, &[], &args.list.page).await?;
    let row =
        |session: &Value| cells(session, ["id", "ip", "user_agent", "created_at", "last_seen_at"]).to_vec();
    let columns = &["SESSION ID", "FROM", "PROGRAM", "SINCE", "LAST SEEN"];
    cx.printer.list(List::of(page, columns, row, "this user has no sessions"))
}

async fn revoke(args: UserSessionsRevokeArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let user = client.user(&args.user).await?;
    let name = cell(&user, "username");
    let what = match args.session {
        Some(session) => format!("this signs {name} out of the session {session}"),
        None => format!("this signs {name} out everywhere"),
    };
    if !args.confirm.is_confirmed(&what, &cx.printer).await? {
        return cx.printer.one(json!({ "user": args.user, "ended": 0 }), "0 sessions were ended");
    }
    let session = args.session.map(|session| format!("/{session}")).unwrap_or_default();
    let done = client.delete(&format!("/api/admin/users/{}/sessions{session}", cell(&user, "id"))).await?;
    let document = json!({ "user": args.user, "ended": done["ended"] });
    cx.printer.one(document, &format!("{} sessions were ended", cell(&done, "ended")))
}
