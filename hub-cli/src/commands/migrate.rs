//! `db migrate`.

use hub_core::data_dir;
use serde_json::json;

use crate::{
    args::LocalArgs,
    exit::Failure,
    local::{self, Open},
    printer::Printer,
};

pub const FIELDS: [&str; 1] = ["database"];

pub async fn run(args: &LocalArgs, printer: &Printer) -> Result<(), Failure> {
    let database = match &args.database_url {
        Some(url) => without_password(url),
        None => data_dir::database(&local::folder(args)).display().to_string(),
    };
    local::open(args, Open::Migrate).await?.shutdown().await;
    printer.note("the schema is up to date");
    printer.one(json!({ "database": database }), &database)
}

fn without_password(text: &str) -> String {
    if let Ok(mut url) = url::Url::parse(text)
        && url.password().is_some()
        && url.set_password(Some("***")).is_ok()
    {
        return url.to_string();
    }
    text.to_owned()
}
