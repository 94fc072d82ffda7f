//! A client of the HTTP API with two transports: a server, and the API of the hub in a data folder, run in this process.

use std::sync::Arc;

use bytes::Bytes;
use hub_core::{Hub, access::Actor, secret::Secret};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

mod event_stream;
mod form;
mod http_client;
mod in_process;
mod lookup;
mod target;
mod traces;

pub use event_stream::EventStream;
pub use form::Form;
use http_client::HttpClient;
pub use http_client::is_loopback;
use in_process::InProcessClient;
pub use lookup::{ChannelRef, InstallationRef, id_of};
use target::Target;
pub use target::address;
pub use traces::TraceDocument;

use crate::{
    args::{HubArgs, LocalArgs, PageArgs},
    document::next_cursor,
    exit::Failure,
    local::{self, Open},
};

/// Parameters of a query. Parameters without a value are left out.
pub type Query<'q> = [(&'q str, Option<String>)];

/// A request to the API.
#[derive(Debug, Clone, Copy)]
pub struct Request<'r> {
    pub method: &'r str,
    pub path: &'r str,
    pub query: &'r Query<'r>,
    pub body: Body<'r>,
}

/// The body of a request.
#[derive(Debug, Clone, Copy)]
pub enum Body<'r> {
    /// `null` is no body.
    Json(&'r Value),
    Form(&'r Form),
}

impl Request<'_> {
    /// Returns the URL at a server. Query values are encoded here.
    fn url(&self, base: &Url) -> Url {
        address_of(base, self.path, self.query)
    }

    fn bytes(&self) -> Bytes {
        match self.body {
            Body::Json(Value::Null) => Bytes::new(),
            Body::Json(value) => value.to_string().into(),
            Body::Form(form) => form.bytes.clone(),
        }
    }

    fn content_type(&self) -> &str {
        match self.body {
            Body::Json(_) => "application/json",
            Body::Form(form) => &form.content_type,
        }
    }
}

/// A hub.
#[derive(Debug, Clone)]
pub struct Client(Transport);

#[derive(Debug, Clone)]
enum Transport {
    Http(Arc<HttpClient>),
    /// The files of a hub on this machine. A server that uses them notices changes within a second.
    InProcess(Box<InProcessClient>),
}

impl Client {
    /// Opens the hub of these arguments: the server if one or a profile is named, the files if they are named, else
    /// the server of the active profile, and without one the files of this machine.
    ///
    /// # Errors
    /// A failure if a server is named without a profile for it, or the files cannot be opened.
    pub async fn open(args: &HubArgs, local: bool) -> Result<Self, Failure> {
        match Self::server_of(args, local)? {
            Some(server) => Ok(server),
            None => Self::in_process(&args.local).await,
        }
    }

    /// Returns the server of these arguments, as [`open`](Self::open) selects it; `None` for files.
    ///
    /// # Errors
    /// A failure if a server is named without a profile for it.
    pub fn server_of(args: &HubArgs, local: bool) -> Result<Option<Self>, Failure> {
        let Some(Target { server, key, name }) = target::choose(args, local)? else { return Ok(None) };
        let client = HttpClient::new(&server, Some(key))?;
        Ok(Some(
            match name {
                Some(name) => client.named(name),
                None => client,
            }
            .into(),
        ))
    }

    /// Creates a client of a server, with an API key or without a credential.
    ///
    /// # Errors
    /// A failure if a key would be sent over plain `http` to another machine.
    pub fn at(server: &Url, key: Option<Secret>) -> Result<Self, Failure> {
        HttpClient::new(server, key).map(Self::from)
    }

    /// Opens the hub in a data folder or a database.
    pub async fn in_process(args: &LocalArgs) -> Result<Self, Failure> {
        let hub = local::open(args, Open::Existing).await?;
        Ok(Self(Transport::InProcess(Box::new(InProcessClient::new(hub)))))
    }

    /// Closes the files.
    pub async fn close(self) {
        if let Transport::InProcess(client) = self.0 {
            client.hub.shutdown().await;
        }
    }

    /// Returns the hub whose files are open, for operations that its API does not offer.
    pub fn hub(&self) -> Option<&Hub> {
        match &self.0 {
            Transport::InProcess(client) => Some(&client.hub),
            Transport::Http(_) => None,
        }
    }

    pub fn server(&self) -> Option<&HttpClient> {
        match &self.0 {
            Transport::Http(server) => Some(server),
            Transport::InProcess(_) => None,
        }
    }

    /// Checks that a server processes the stored messages. With files, one has to run on them.
    ///
    /// # Errors
    /// `UNAVAILABLE` if no server does.
    pub async fn expect_running_server(&self) -> Result<(), Failure> {
        match self.hub() {
            Some(hub) if !hub.is_at_work().await? => {
                Err(Failure::unreachable("no server is running on these files, so nothing would be sent")
                    .with_hint("start hub-server first"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the same hub with another caller. A server keeps the caller of its key.
    pub fn acting_as(&self, actor: Actor) -> Self {
        match &self.0 {
            Transport::InProcess(client) => Self(Transport::InProcess(Box::new(client.acting_as(actor)))),
            Transport::Http(_) => self.clone(),
        }
    }

    /// Returns the `data` of a response. `path` begins with `/api/`; query values are encoded here.
    ///
    /// # Errors
    /// The error of the response, with the exit code of its category; `UNAVAILABLE` when no hub responds.
    pub async fn call(
        &self,
        method: &str,
        path: &str,
        query: &Query<'_>,
        body: &Value,
    ) -> Result<Value, Failure> {
        Ok(self.exchange(Request { method, path, query, body: Body::Json(body) }).await?["data"].take())
    }

    /// The whole document of a response.
    pub async fn exchange(&self, request: Request<'_>) -> Result<Value, Failure> {
        // `main` handles signals from the command's first wait on, and a response can arrive before the first wait.
        tokio::task::yield_now().await;
        match &self.0 {
            Transport::Http(server) => server.exchange(request).await,
            Transport::InProcess(client) => client.exchange(request).await,
        }
    }

    pub async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.call("GET", path, &[], &Value::Null).await
    }

    /// Returns a page of a list. A filtered list may have empty pages before its last one, which are skipped.
    pub async fn list(&self, path: &str, filters: &Query<'_>, page: &PageArgs) -> Result<Value, Failure> {
        let mut cursor = page.cursor.clone();
        loop {
            let paging = [("limit", Some(page.limit.to_string())), ("cursor", cursor)];
            let found = self.call("GET", path, &[filters, &paging].concat(), &Value::Null).await?;
            let is_empty = found["items"].as_array().is_some_and(Vec::is_empty);
            match next_cursor(&found).filter(|_| is_empty) {
                Some(next) => cursor = Some(next),
                None => return Ok(found),
            }
        }
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.call("POST", path, &[], body).await
    }

    /// Posts a body of any kind.
    pub async fn post_body(&self, path: &str, body: Body<'_>) -> Result<Value, Failure> {
        Ok(self.exchange(Request { method: "POST", path, query: &[], body }).await?["data"].take())
    }

    pub async fn put(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.call("PUT", path, &[], body).await
    }

    pub async fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.call("DELETE", path, &[], &Value::Null).await
    }
}

impl From<HttpClient> for Client {
    fn from(server: HttpClient) -> Self {
        Self(Transport::Http(Arc::new(server)))
    }
}

/// Returns an address below a base. Query values are encoded here.
fn address_of(base: &Url, path: &str, query: &Query<'_>) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    let given = query.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    let mut pairs = url.query_pairs_mut();
    pairs.clear().extend_pairs(given);
    drop(pairs);
    if url.query() == Some("") {
        url.set_query(None);
    }
    url
}

/// Deserializes a document of the API.
pub fn read<T: DeserializeOwned>(document: Value) -> Result<T, Failure> {
    serde_json::from_value(document)
        .map_err(|error| Failure::unreachable(format!("the server's response cannot be read: {error}")))
}
