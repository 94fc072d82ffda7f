//! `users create-admin`.

use hub_core::{access::Actor, accounts::NewUser};
use serde_json::json;

use super::secret::first_line;
use crate::{
    args::CreateAdminArgs,
    exit::Failure,
    local::{self, Open},
    printer::Printer,
};

pub async fn run(args: CreateAdminArgs, printer: &Printer) -> Result<(), Failure> {
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
