//! `users list`, `show`, `create`, `edit`, `disable`, `enable`, `delete`, `invite`, `reset-link`.

use data_encoding::HEXLOWER;
use hub_core::{
    accounts::{NewUser, UserStatus},
    admin::{UserPatch, UserQuery},
    bots::qr::qr_text_art,
    random::Random,
    secret::Secret,
};
use serde_json::{Value, json};

use crate::{
    args::{
        InviteArgs, ResetLinkArgs, UsersCreateArgs, UsersDeleteArgs, UsersEditArgs, UsersListArgs,
        UsersShowArgs,
    },
    exit::Failure,
    printer::{List, Printer},
    reach::Reach,
    screen,
};

/// Of a user; the last two of one who was just made.
pub const FIELDS: [&str; 14] = [
    "id",
    "username",
    "display_name",
    "email",
    "role",
    "status",
    "has_password",
    "bots",
    "sessions",
    "api_keys",
    "last_seen_at",
    "created_at",
    "reset_link",
    "expires_at",
];

pub const DELETE_FIELDS: [&str; 3] = ["id", "username", "deleted"];
pub const INVITE_FIELDS: [&str; 3] = ["invite", "invite_link", "expires_at"];
pub const RESET_LINK_FIELDS: [&str; 2] = ["reset_link", "expires_at"];

/// A field of a document as a cell.
pub(super) fn cell(document: &Value, field: &str) -> String {
    match &document[field] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

pub async fn list(args: UsersListArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let query =
        UserQuery { role: args.role.map(Into::into), status: args.status.map(Into::into), q: args.q.clone() };
    let reach = Reach::open(&args.hub, local).await?;
    let mut page = reach.users(&query, &args.page).await?;
    reach.close().await;
    let items = page["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let row = |user: &Value| {
        ["id", "username", "role", "status", "bots", "last_seen_at"].map(|field| cell(user, field)).to_vec()
    };
    printer.list(List {
        columns: &["USER ID", "NAME", "ROLE", "STATUS", "BOTS", "LAST SEEN"],
        rows: items.iter().map(row).collect(),
        items,
        next_cursor: page["next_cursor"].as_str().map(str::to_owned),
        empty: "no such users",
    })
}

pub async fn show(args: UsersShowArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let user = reach.user(&args.user).await?;
    reach.close().await;
    print(user, printer)
}

pub async fn create(args: UsersCreateArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    // Nobody knows it: the link is the way in.
    let password = Secret::new(HEXLOWER.encode(&Random::system().bytes::<32>()));
    let new = NewUser { username: args.username, password, display_name: args.display_name, email: None };
    let reach = Reach::open(&args.hub, local).await?;
    let mut user = reach.create_user(new, args.role.into()).await?;
    let name = cell(&user, "username");
    let made = reach.reset_link(&name).await?;
    reach.close().await;
    for field in RESET_LINK_FIELDS {
        user[field] = made[field].clone();
    }
    show_link(user, &name, args.qr, printer)
}

pub async fn edit(args: UsersEditArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let patch = UserPatch {
        role: args.role.map(Into::into),
        status: args.status.map(Into::into),
        display_name: args.display_name,
    };
    if patch == UserPatch::default() {
        return Err(Failure::usage("nothing to change").with_hint("add --role, --status or --display-name"));
    }
    let reach = Reach::open(&args.hub, local).await?;
    let user = reach.update_user(&args.user, patch).await?;
    reach.close().await;
    print(user, printer)
}

pub async fn switch(
    args: UsersShowArgs,
    status: UserStatus,
    local: bool,
    printer: &Printer,
) -> Result<(), Failure> {
    let patch = UserPatch { status: Some(status), ..UserPatch::default() };
    let reach = Reach::open(&args.hub, local).await?;
    let user = reach.update_user(&args.user, patch).await?;
    reach.close().await;
    print(user, printer)
}

pub async fn delete(args: UsersDeleteArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let user = reach.user(&args.user).await?;
    let name = cell(&user, "username");
    let what = format!("{name} goes for good, with {} bots and everything of theirs", cell(&user, "bots"));
    let meant = args.confirm.is_meant_for_good(&what, &name, printer).await?;
    if meant {
        reach.delete_user(&user).await?;
    }
    reach.close().await;
    printer.note(&if meant {
        format!("{name} is gone")
    } else {
        format!("{name} would go, with {} bots; nothing was changed", cell(&user, "bots"))
    });
    let document = json!({ "id": user["id"], "username": user["username"], "deleted": meant });
    printer.one(document, &cell(&user, "id"))
}

pub async fn invite(args: InviteArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let invite = reach.invite(args.days).await?;
    reach.close().await;
    printer.note(&format!("one person can register with it until {}", cell(&invite, "expires_at")));
    let text = screen::clean(&cell(&invite, "invite_link"));
    printer.one(invite, &text)
}

pub async fn reset_link(args: ResetLinkArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let made = reach.reset_link(&args.user).await?;
    reach.close().await;
    show_link(made, &args.user, args.qr, printer)
}

/// A document with a link that sets the password of a user.
fn show_link(made: Value, user: &str, qr: bool, printer: &Printer) -> Result<(), Failure> {
    let link = screen::clean(&cell(&made, "reset_link"));
    if qr {
        // Asked for: on stderr whatever the format.
        Printer::ready(&qr_text_art(&link)?);
    }
    let until = cell(&made, "expires_at");
    printer.note(&format!("whoever opens it sets the password of {user}, once, until {until}"));
    printer.one(made, &link)
}

fn print(user: Value, printer: &Printer) -> Result<(), Failure> {
    let own = FIELDS.iter().filter(|field| !RESET_LINK_FIELDS.contains(field));
    let lines = own.map(|field| format!("{field:<13}  {}", crate::screen::clean(&cell(&user, field))));
    let text = lines.collect::<Vec<_>>().join("\n");
    printer.one(user, &text)
}
