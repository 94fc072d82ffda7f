//! `users sessions list`, `users sessions revoke`.

use serde_json::{Value, json};

use crate::{
    args::{UserSessionsCommand, UserSessionsListArgs, UserSessionsRevokeArgs},
    client::Client,
    document::cell,
    exit::Failure,
    printer::{List, Printer},
};

pub const REVOKE_FIELDS: [&str; 2] = ["user", "ended"];

pub async fn run(command: UserSessionsCommand, local: bool, printer: &Printer) -> Result<(), Failure> {
    match command {
        UserSessionsCommand::List(args) => list(args, local, printer).await,
        UserSessionsCommand::Revoke(args) => revoke(args, local, printer).await,
    }
}

async fn list(args: UserSessionsListArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let client = Client::open(&args.list.hub, local).await?;
    let path = format!("{}/sessions", client.user_path(&args.user).await?);
    let page = client.list(&path, &[], &args.list.page).await?;
    client.close().await;
    let row = |session: &Value| {
        ["id", "ip", "user_agent", "created_at", "last_seen_at"].map(|field| cell(session, field)).to_vec()
    };
    let columns = &["SESSION ID", "FROM", "PROGRAM", "SINCE", "LAST SEEN"];
    printer.list(List::of(page, columns, row, "this user has no sessions"))
}

async fn revoke(args: UserSessionsRevokeArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let client = Client::open(&args.hub, local).await?;
    let user = client.user(&args.user).await?;
    let name = cell(&user, "username");
    let what = match args.session {
        Some(session) => format!("this signs {name} out of the session {session}"),
        None => format!("this signs {name} out everywhere"),
    };
    if !args.confirm.is_meant(&what, printer).await? {
        client.close().await;
        return printer.one(
            json!({ "user": args.user, "ended": 0 }),
            &format!("{what} (dry run: nothing was changed)"),
        );
    }
    let session = args.session.map(|session| format!("/{session}")).unwrap_or_default();
    let done = client.delete(&format!("/api/admin/users/{}/sessions{session}", cell(&user, "id"))).await?;
    client.close().await;
    let document = json!({ "user": args.user, "ended": done["ended"] });
    printer.one(document, &format!("{} sessions were ended", cell(&done, "ended")))
}
