//! The web console: pages for people, over the same calls of `hub_core` as the HTTP API, with the same sessions,
//! request types and limits. A page changes nothing that the API cannot change: each of its actions names the
//! operation that does the same.
//!
//! The pages are HTML and forms that work without script; the scripts in `assets` make them faster and live.

use poem::{Route, http::Method};

pub(crate) use account::confirm::CONFIRM;
pub(crate) use assets::icon;
pub(crate) use page::{Page, see_other};

mod account;
mod assets;
mod bots;
mod channels;
mod commands;
mod find;
mod forms;
mod home;
mod layout;
mod messages;
mod page;
mod parts;
mod playground;
pub(crate) mod refusals;
mod replay;
mod shortcuts;
mod traces;
mod words;

#[cfg(test)]
mod bind_tests;
#[cfg(test)]
mod channel_tests;
#[cfg(test)]
mod sink_tests;
#[cfg(test)]
mod tests;

/// Address of the first page.
pub(crate) const HOME: &str = "/console";

static PAGES: &[&Page] = &[
    &home::PAGE,
    &playground::PAGE,
    &messages::PAGE,
    &messages::message::PAGE,
    &replay::PAGE,
    &traces::PAGE,
    &bots::PAGE,
    &bots::bind::PAGE,
    &bots::bot::PAGE,
    &bots::contacts::PAGE,
    &bots::contact::PAGE,
    &channels::overview::PAGE,
    &channels::filter::PAGE,
    &channels::webhook::PAGE,
    &channels::websocket::PAGE,
    &channels::ilink::PAGE,
    &channels::ilink::LOGIN,
    &channels::ai::PAGE,
    &channels::plugins::PAGE,
    &channels::settings::PAGE,
    &account::profile::PAGE,
    &account::security::PAGE,
    &account::devices::PAGE,
    &account::sessions::PAGE,
    &account::keys::PAGE,
    &account::activity::PAGE,
    &account::confirm::PAGE,
    &find::PAGE,
    &shortcuts::PAGE,
];

/// Whether a path belongs to the console's pages; their failures are pages too.
pub(crate) fn is_page(path: &str) -> bool {
    path == HOME
        || path.strip_prefix(HOME).is_some_and(|rest| rest.starts_with('/') && !assets::is_asset(path))
}

/// Adds the pages and their files.
pub(crate) fn routes(routes: Route) -> Route {
    let pages = PAGES.iter().fold(routes, |routes, page| routes.at(page.path, page::PageEndpoint(page)));
    pages.at(assets::ROUTE, poem::get(assets::serve))
}

/// The paths with their methods, for the table of routes.
pub(crate) fn paths() -> Vec<(&'static str, Vec<Method>)> {
    let pages = PAGES.iter().map(|page| (page.path, vec![Method::GET, Method::POST]));
    pages.chain([(assets::ROUTE, vec![Method::GET])]).collect()
}
