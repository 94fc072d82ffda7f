//! The WebSocket sink of a channel.

use hub_core::{
    Error,
    channels::{ChannelClients, sinks::WebSocketSettings},
    openapi::Set,
};
use maud::{Markup, html};

use super::{
    Open, Tab,
    list::{base, waiting},
    switch,
};
use crate::{
    console::{
        page::{Answer, Ask, Page, does, handler},
        parts::{
            code,
            form::{Field, Form},
            list,
            time::time,
        },
    },
    envelope::ApiError,
};

pub(in crate::console) static PAGE: Page = Page {
    path: "/console/bots/:bot/channels/:channel/websocket",
    shows: &["getChannel", "listChannelClients"],
    command: "hub-cli channels clients --bot {bot} {channel}",
    show: handler!(show),
    actions: &[
        does!("setWebSocketSink", save, |words| words.sockets.saved),
        does!("deleteChannelClient", close, |words| words.sockets.closed),
    ],
};

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = &ask.words.sockets;
    let open = Open::of(ask).await?;
    let settings = &open.channel.websocket;
    let connected = ask.hub.channels().clients(&ask.actor, open.bot.id, open.channel.id).await?;
    let main = html! {
        p.muted { (words.what) }
        p { (switch(ask.words, settings.enabled)) }
        section data-region="clients" data-poll="3000" aria-labelledby="clients" {
            h2 #clients { (words.clients) }
            (clients(ask, &connected))
        }
        section aria-labelledby="configuration" {
            h2 #configuration { (words.configuration) }
            (configuration(ask, settings))
        }
        section aria-labelledby="connect" {
            h2 #connect { (words.connect) }
            (recipes(ask))
        }
    };
    Ok(open.page(ask, Tab::WebSocket, &main))
}

/// Renders the connected clients with their positions.
fn clients(ask: &Ask, connected: &ChannelClients) -> Markup {
    let words = &ask.words.sockets;
    let rows = html! {
        @for client in &connected.clients {
            @let address = client.address.map(|address| address.to_canonical().to_string()).unwrap_or_default();
            tr data-key=(client.id) {
                td { bdi { (address) } }
                td { bdi { (client.user_agent) } }
                td { (time(Some(client.connected_at), "")) }
                td { data value=(client.sent_seq) { (client.sent_seq) } }
                td { @match client.acked_seq { Some(seq) => data value=(seq) { (seq) }, None => (words.never_acknowledged) } }
                td { data value=(client.lag) { (client.lag) } }
                td {
                    form method="post" data-enhance {
                        input type="hidden" name="client" value=(client.id);
                        button name="do" value="close" { (words.close) }
                    }
                }
            }
        }
    };
    let columns =
        [words.address, words.program, words.since, words.sent, words.acknowledged, words.lag, words.action];
    html! {
        @if connected.clients.is_empty() {
            p.muted { (words.no_clients) }
        } @else {
            (list::table(words.clients, &columns, &rows))
        }
        @if connected.on_other_nodes > 0 { p { ((words.elsewhere)(connected.on_other_nodes)) } }
    }
}

fn configuration(ask: &Ask, settings: &WebSocketSettings) -> Markup {
    let words = &ask.words.sockets;
    let form = Form::new(ask, "save");
    let origins = Field {
        name: "allowed_origins",
        label: words.origins,
        help: Some(words.origins_help),
        value: settings.allowed_origins.join("\n"),
        ..Field::default()
    };
    let fields = html! {
        (form.checkbox("enabled", words.enabled, settings.enabled))
        (form.checkbox("include_outbound", words.include_outbound, settings.include_outbound))
        (form.area(&origins, 3))
    };
    form.render(&fields, words.save)
}

fn recipes(ask: &Ask) -> Markup {
    let words = &ask.words.sockets;
    let base = base(ask);
    // `http` and `https` become `ws` and `wss`.
    let socket = format!("ws{}/api/v1/channels/connect", base.strip_prefix("http").unwrap_or(base));
    html! {
        p { (words.with_key) }
        (code::copied(ask.words, &format!("websocat -H \"Authorization: Bearer $HUB_CHANNEL_KEY\" '{socket}'")))
        p { (words.without_socket) }
        (code::copied(ask.words, &waiting(ask, "$HUB_CHANNEL_KEY")))
        p { (words.forward) }
        (code::copied(ask.words, "hub-cli listen --forward-to http://localhost:3000"))
    }
}

async fn save(ask: &Ask) -> Result<Answer, ApiError> {
    let Set(settings) = ask.form::<Set<WebSocketSettings>>()?;
    ask.hub.channels().set_websocket(&ask.actor, ask.id("bot")?, ask.id("channel")?, &settings).await?;
    Ok(ask.done())
}

async fn close(ask: &Ask) -> Result<Answer, ApiError> {
    let client = ask.field("client").unwrap_or_default().parse();
    let client = client.map_err(|_| Error::not_found("client"))?;
    ask.hub.channels().close_client(&ask.actor, ask.id("bot")?, ask.id("channel")?, client).await?;
    Ok(ask.done())
}
