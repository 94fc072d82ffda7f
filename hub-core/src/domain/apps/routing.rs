//! Routing of a message to the apps on its bot. The first rule that matches decides: the app that the text addresses
//! by its handle, the apps that have the command, or the apps that subscribed to messages of its kind.

use crate::{
    apps::{AppEventKind, AppScope, AppTool},
    model::app::AppRuntime,
    network::MessageKind,
};

/// Input of an app from a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppInput<'t> {
    /// The message, with the text as it is meant for the app.
    Message(&'t str),
    /// A command.
    Command {
        /// Its name, in lower case.
        name: String,
        /// The text after it.
        text: &'t str,
        /// Whether the app was called by its handle.
        by_handle: bool,
    },
}

impl AppRuntime {
    /// The commands of an app and of its installation.
    pub fn commands_of<'t>(tools: impl IntoIterator<Item = &'t AppTool>) -> Vec<String> {
        tools.into_iter().filter_map(|tool| tool.command.clone()).collect()
    }

    fn wants(&self, kind: AppEventKind) -> bool {
        self.events.iter().any(|subscribed| *subscribed == kind || *subscribed == AppEventKind::Message)
    }

    /// Returns the text after the app's handle if the text begins with the handle.
    fn called<'t>(&self, text: &'t str) -> Option<&'t str> {
        let rest = self.handle.addressed(text)?;
        // A mention further on leaves the text whole.
        (text.starts_with(['@', '＠']) && rest.len() < text.len()).then_some(rest)
    }
}

/// Returns the kind of event for a kind of message; `None` if apps get no event for it.
pub fn kind_of(kind: MessageKind) -> Option<AppEventKind> {
    match kind {
        MessageKind::Text => Some(AppEventKind::MessageText),
        MessageKind::Image => Some(AppEventKind::MessageImage),
        MessageKind::Voice => Some(AppEventKind::MessageVoice),
        MessageKind::Video => Some(AppEventKind::MessageVideo),
        MessageKind::File => Some(AppEventKind::MessageFile),
        MessageKind::Other => None,
    }
}

/// Decides which apps get an event for a message, and which event. Apps that may not read messages get none.
pub fn route<'a, 't>(
    apps: &'a [AppRuntime],
    kind: MessageKind,
    text: &'t str,
) -> Vec<(&'a AppRuntime, AppInput<'t>)> {
    let Some(kind) = kind_of(kind) else { return Vec::new() };
    let apps = || apps.iter().filter(|app| app.app.scopes.has(AppScope::MessageRead));
    let trimmed = text.trim();
    if let Some((app, rest)) = apps().find_map(|app| Some((app, app.called(trimmed)?))) {
        let input = match command(rest) {
            Some((name, text)) => AppInput::Command { name, text, by_handle: true },
            None => AppInput::Message(rest),
        };
        return vec![(app, input)];
    }
    if let Some((name, text)) = command(trimmed) {
        let has = |app: &&AppRuntime| app.commands.contains(&name);
        let input = || AppInput::Command { name: name.clone(), text, by_handle: false };
        let commanded: Vec<_> = apps().filter(has).map(|app| (app, input())).collect();
        if !commanded.is_empty() {
            return commanded;
        }
    }
    apps().filter(|app| app.wants(kind)).map(|app| (app, AppInput::Message(text))).collect()
}

fn command(text: &str) -> Option<(String, &str)> {
    let rest = text.strip_prefix(['/', '／'])?;
    let (name, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    (!name.is_empty()).then(|| (name.to_lowercase(), rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{access::AppActor, apps::AppScopes, id::Id, secret::KeyMark};

    fn app(number: u128, handle: &str, events: &[AppEventKind], commands: &[&str]) -> AppRuntime {
        AppRuntime {
            app: AppActor {
                installation_id: Id::from_u128(number),
                app_id: Id::from_u128(number),
                bot_id: Id::from_u128(1),
                owner_id: Id::from_u128(1),
                is_own: true,
                scopes: AppScopes::default().with(AppScope::MessageRead),
                token: KeyMark::default(),
            },
            handle: handle.parse().unwrap(),
            events: events.to_vec(),
            commands: commands.iter().map(|name| (*name).to_owned()).collect(),
            has_webhook: true,
        }
    }

    fn input(apps: &[AppRuntime], kind: MessageKind, text: &str) -> Vec<String> {
        let show = |(app, input): (&AppRuntime, AppInput<'_>)| match input {
            AppInput::Message(text) => format!("{} <{text}>", app.handle),
            AppInput::Command { name, text, by_handle } => {
                format!("{} /{name} <{text}> {by_handle}", app.handle)
            }
        };
        route(apps, kind, text).into_iter().map(show).collect()
    }

    #[test]
    fn one_bucket_in_the_order_of_handle_command_and_subscription() {
        let apps = [
            app(1, "weather", &[], &["weather", "天气"]),
            app(2, "news", &[AppEventKind::MessageText], &["news", "weather"]),
            app(3, "all", &[AppEventKind::Message], &[]),
            app(4, "pictures", &[AppEventKind::MessageImage], &[]),
        ];
        let text = |text: &str| input(&apps, MessageKind::Text, text);
        assert_eq!(text("@weather tomorrow?"), ["weather <tomorrow?>"]);
        assert_eq!(text(" ＠Weather\u{2005}tomorrow?"), ["weather <tomorrow?>"]);
        assert_eq!(text("@weather /Unknown a b "), ["weather /unknown <a b> true"]);
        assert_eq!(
            text("/weather Berlin"),
            ["weather /weather <Berlin> false", "news /weather <Berlin> false"]
        );
        assert_eq!(text("/天气"), ["weather /天气 <> false"]);
        // A mention of an unknown handle is an ordinary message.
        for plain in ["hello", "/unknown x", "@unknown hi", "ask @weather about it", "/", "a/weather"] {
            assert_eq!(text(plain), [format!("news <{plain}>"), format!("all <{plain}>")]);
        }
        assert_eq!(input(&apps, MessageKind::Image, ""), ["all <>", "pictures <>"]);
        assert!(input(&apps, MessageKind::Other, "x").is_empty());
    }

    #[test]
    fn an_app_without_the_read_scope_gets_no_event() {
        let mut apps = [app(1, "weather", &[AppEventKind::Message], &["weather"])];
        apps[0].app.scopes = AppScopes::default();
        for text in ["hello", "@weather hi", "/weather"] {
            assert!(input(&apps, MessageKind::Text, text).is_empty(), "{text}");
        }
    }
}
