//! `users list`, `show`, `create`, `create-admin`, `edit`, `disable`, `enable`, `delete`, `invite`, `reset-link`.

use data_encoding::HEXLOWER;
use hub_core::{
    access::{Actor, Role},
    accounts::{NewUser, UserStatus},
    bots::qr::qr_text_art,
    random::Random,
    secret::Secret,
};
use serde_json::{Value, json};

use super::secret::first_line;
use crate::{
    args::{
        CreateAdminArgs, HubArgs, InviteArgs, ResetLinkArgs, UsersCreateArgs, UsersDeleteArgs, UsersEditArgs,
        UsersListArgs, UsersShowArgs,
    },
    client::Client,
    context::Context,
    document::{cell, cells, lines, without_nulls},
    exit::Failure,
    fields::Fields,
    local::{self, Open},
    printer::{List, Printer},
    screen,
};

/// Validity of the link for a new user.
pub const LINK_FIELDS: [&str; 2] = ["reset_link", "expires_at"];

pub async fn list(args: UsersListArgs, cx: &Context) -> Result<(), Failure> {
    let filters = [
        ("role", args.role.map(|role| role.as_str().to_owned())),
        ("status", args.status.map(|status| status.as_str().to_owned())),
        ("q", args.q),
    ];
    let client = cx.hub(&args.list.hub).await?;
    let page = client.list("/api/admin/users", &filters, &args.list.page).await?;
    let row =
        |user: &Value| cells(user, ["id", "username", "role", "status", "bots", "last_seen_at"]).to_vec();
    let columns = &["USER ID", "NAME", "ROLE", "STATUS", "BOTS", "LAST SEEN"];
    cx.printer.list(List::of(page, columns, row, "no such users"))
}

pub async fn show(args: UsersShowArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let user = client.user(&args.user).await?;
    print(user, &cx.printer)
}

pub async fn create(args: UsersCreateArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let path = create_account(&client, &args).await?;
    let mut user = client.get(&path).await?;
    let name = cell(&user, "username");
    let mut link = client.post(&format!("{path}/reset-link"), &Value::Null).await?;
    for field in LINK_FIELDS {
        user[field] = link[field].take();
    }
    show_link(user, &name, args.qr, &cx.printer)
}

pub async fn create_admin(args: CreateAdminArgs, printer: &Printer) -> Result<(), Failure> {
    let password = first_line(&args.password_file)?;
    let hub = local::open(&args.local, Open::Migrate).await?;
    let new = NewUser { username: args.username, password, display_name: None, email: None };
    let user = hub.accounts().create_admin(&Actor::Operator, new).await?;
    hub.shutdown().await;
    let document = json!({
        "id": user.id,
        "username": user.username,
        "display_name": user.display_name,
        "role": user.role.as_str(),
        "created_at": user.created_at,
    });
    printer.note(&format!("{} is an administrator now", user.username));
    printer.one(document, &user.id.to_string())
}

/// Creates an account with an undisclosed password; returns its path. The API has no operation for it: with local
/// files the hub creates it; on a server it is registered with an invitation, and the session of registering is
/// revoked.
async fn create_account(client: &Client, args: &UsersCreateArgs) -> Result<String, Failure> {
    let password = Secret::new(HEXLOWER.encode(&Random::system().bytes::<32>()));
    let (username, display_name) = (args.username.clone(), args.display_name.clone());
    let Some(server) = client.server() else {
        let hub = client.hub().ok_or_else(|| Failure::usage("there is no local hub"))?;
        let new = NewUser { username, password, display_name, email: None };
        let user = hub.accounts().create_user(&Actor::Operator, new, args.role).await?;
        return Ok(format!("/api/admin/users/{}", user.id));
    };
    let invite = client.post("/api/admin/invites", &json!({ "expires_in_days": 1 })).await?;
    let body = without_nulls(&json!({
        "username": username,
        "password": password.expose(),
        "display_name": display_name,
        "invite": invite["invite"],
    }));
    let registered = Client::from(server.with_token(None)?).post("/api/auth/register", &body).await?;
    let path = client.user_path(registered["username"].as_str().unwrap_or(&username)).await?;
    client.delete(&format!("{path}/sessions")).await?;
    if args.role == Role::Admin {
        client.put(&path, &json!({ "role": "admin" })).await?;
    }
    Ok(path)
}

pub async fn edit(args: UsersEditArgs, cx: &Context) -> Result<(), Failure> {
    let changes = without_nulls(&json!({
        "role": args.role.map(Role::as_str),
        "status": args.status.map(UserStatus::as_str),
        "display_name": args.display_name,
    }));
    if changes == json!({}) {
        return Err(Failure::usage("nothing to change").with_hint("add --role, --status or --display-name"));
    }
    change(&args.hub, &args.user, &changes, cx).await
}

pub async fn switch(args: UsersShowArgs, status: UserStatus, cx: &Context) -> Result<(), Failure> {
    change(&args.hub, &args.user, &json!({ "status": status.as_str() }), cx).await
}

async fn change(hub: &HubArgs, user: &str, changes: &Value, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(hub).await?;
    let user = client.put(&client.user_path(user).await?, changes).await?;
    print(user, &cx.printer)
}

pub async fn delete(args: UsersDeleteArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let user = client.user(&args.user).await?;
    let name = cell(&user, "username");
    let what =
        format!("this permanently deletes {name} with {} bots and all their data", cell(&user, "bots"));
    let confirmed = args.confirm.is_confirmed_by_name(&what, &name, &cx.printer).await?;
    if confirmed {
        client.delete(&format!("/api/admin/users/{}", cell(&user, "id"))).await?;
        cx.printer.note(&format!("{name} was deleted"));
    }
    let document = json!({ "id": user["id"], "username": user["username"], "deleted": confirmed });
    cx.printer.one(document, &cell(&user, "id"))
}

pub async fn invite(args: InviteArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let invite = client.post("/api/admin/invites", &json!({ "expires_in_days": args.days })).await?;
    cx.printer.note(&format!("one user can register with it until {}", cell(&invite, "expires_at")));
    let text = screen::clean(&cell(&invite, "invite_link"));
    cx.printer.one(invite, &text)
}

pub async fn reset_link(args: ResetLinkArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let made =
        client.post(&format!("{}/reset-link", client.user_path(&args.user).await?), &Value::Null).await?;
    show_link(made, &args.user, args.qr, &cx.printer)
}

/// A document with a link that sets the password of a user.
fn show_link(made: Value, user: &str, qr: bool, printer: &Printer) -> Result<(), Failure> {
    let link = screen::clean(&cell(&made, "reset_link"));
    if qr {
        // Requested with a flag: on stderr with every format.
        Printer::ready(&qr_text_art(&link)?);
    }
    let until = cell(&made, "expires_at");
    printer.note(&format!("anyone who opens it sets the password of {user}, once, until {until}"));
    printer.one(made, &link)
}

fn print(user: Value, printer: &Printer) -> Result<(), Failure> {
    let text = lines(&user, Fields::of("getUser").names(), 13);
    printer.one(user, &text)
}
