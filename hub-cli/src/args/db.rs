use clap::Subcommand;

use super::LocalArgs;

/// Look after the database
#[derive(Debug, Subcommand)]
pub enum DbCommand {
    /// Bring the schema up to date, making the database when there is none
    #[command(
        after_help = "Examples:\n  hub-cli db migrate\n  hub-cli db migrate --database-url sqlite:///var/lib/hub/hub.db\n
Exit codes: 0 up to date, 7 the database cannot be reached or is of a newer version.\nSee also: hub-cli help env"
    )]
    Migrate {
        #[command(flatten)]
        local: LocalArgs,
    },
}
