//! Opening connections: names are resolved, and their addresses checked, before anything is dialled.

use std::{
    fmt,
    net::SocketAddr,
    result::Result,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use hyper_util::client::legacy::connect::Connection;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tower_service::Service;

use super::{
    EgressConfig, OutboundProxy, Resolver,
    fault::{Blocked, ProxyUnresolved, Unresolved},
    phases::Marks,
    resend,
    target::Target,
};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Addresses of one name that are tried.
const MAX_ADDRESSES: usize = 16;

tokio::task_local! {
    /// The target of the request of this task. The library's resolver hears the name alone, and rules and own listeners are about ports too.
    pub(super) static DIAL: Dial;
}

/// The target of a request, as far as opening a connection needs it.
#[derive(Debug, Clone)]
pub(super) struct Dial {
    port: u16,
    /// The host, if its addresses are to be checked before a proxy is asked for a connection to it.
    check: Option<String>,
    /// Whether the connection goes through the proxy.
    proxied: bool,
}

impl Dial {
    pub(super) fn of(target: &Target, config: &EgressConfig) -> Self {
        let proxy = config.proxy.as_ref().filter(|proxy| proxy.takes(target));
        let is_name = target.address.is_none();
        let check = proxy.filter(|proxy| is_name && proxy.needs_check()).map(|_| target.host.clone());
        Self { port: target.port, check, proxied: proxy.is_some() }
    }

    pub(super) fn is_proxied(&self) -> bool {
        self.proxied
    }
}

/// Opens connections with what is known of the request that needs one. A connection may be completed by another task when
/// its request has found one that became free.
#[derive(Debug, Clone)]
pub(super) struct Dialler<S> {
    connector: S,
    checker: CheckedResolver,
}

impl<S> Dialler<S> {
    pub(super) fn new(connector: S, checker: &CheckedResolver) -> Self {
        Self { connector, checker: checker.clone() }
    }
}

impl<R, S> Service<R> for Dialler<S>
where
    S: Service<R, Error = BoxError>,
    S::Future: Send + 'static,
    S::Response: Connection + Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let (connected, checker) = (self.connector.call(request), self.checker.clone());
        let dial = DIAL.try_with(Dial::clone);
        let connecting = async move {
            if let Ok(Dial { check: Some(host), port, .. }) = &dial
                && checker.rules.is_some()
            {
                checker.find(host, *port).await?;
            }
            let connection = match dial {
                Ok(dial) => DIAL.scope(dial, connected).await?,
                Err(_) => connected.await?,
            };
            resend::note_opened(&connection);
            Ok(connection)
        };
        Box::pin(connecting)
    }
}

/// Resolves a name and, where there are rules, refuses it when any of its addresses may not be dialled. What is
/// returned is what is dialled: there is no second lookup to be answered differently.
#[derive(Clone)]
pub(super) struct CheckedResolver {
    rules: Option<Arc<EgressConfig>>,
    resolver: Option<Arc<dyn Resolver>>,
    proxy: Option<OutboundProxy>,
}

impl CheckedResolver {
    pub(super) fn new(config: &Arc<EgressConfig>, ruled: bool) -> Self {
        let (resolver, proxy) = (config.resolver.clone(), config.proxy.clone());
        Self { rules: ruled.then(|| Arc::clone(config)), resolver, proxy }
    }
}

impl fmt::Debug for CheckedResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckedResolver").finish_non_exhaustive()
    }
}

impl CheckedResolver {
    /// The addresses of a host, if all may be dialled at this port.
    async fn find(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, BoxError> {
        let found = self.resolve_freely(host, port).await?;
        if let Some(rules) = &self.rules
            && !found.iter().all(|at| rules.admits_address(host, at.ip(), port))
        {
            let refusal = rules.refusal(host, port, found.iter().map(SocketAddr::ip));
            return Err(Blocked(refusal.reason).into());
        }
        Ok(found)
    }

    async fn resolve_freely(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, BoxError> {
        let found: Vec<SocketAddr> = match &self.resolver {
            Some(resolver) => {
                let found = resolver.resolve(host).await.map_err(|_| Unresolved)?;
                found.into_iter().map(|address| (address, port).into()).collect()
            }
            None => tokio::net::lookup_host((host, port)).await.map_err(|_| Unresolved)?.collect(),
        };
        if found.is_empty() { Err(Unresolved.into()) } else { Ok(found) }
    }
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (resolver, marks) = (self.clone(), Marks::of_task());
        // Without a port nothing can be decided, so nothing is dialled.
        let dial = DIAL.try_with(Dial::clone).map_err(|_| Blocked("has no known port".to_owned()));
        Box::pin(async move {
            let (host, dial) = (name.as_str(), dial?);
            marks.as_ref().inspect(|marks| marks.resolving());
            // Of a request through the proxy, the proxy's own name: the operator wrote it, and the target was checked.
            let is_proxy = dial.proxied && resolver.proxy.as_ref().is_some_and(|proxy| proxy.is_at(host));
            let mut found = if is_proxy {
                resolver.resolve_freely(host, dial.port).await.map_err(|_| ProxyUnresolved)?
            } else {
                resolver.find(host, dial.port).await?
            };
            marks.as_ref().inspect(|marks| marks.resolved());
            found.truncate(MAX_ADDRESSES);
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
