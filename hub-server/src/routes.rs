//! Which methods each path has, and which of them take a body: for the `Allow` header of a 405, for the label of
//! a request in logs and metrics, and for the cap of its body.

use std::sync::Arc;

use poem::http::Method;
use poem_openapi::OpenApi;

use crate::{body_cap::STRANGER, files, paths};

/// The paths of the application with their methods.
#[derive(Debug)]
pub(crate) struct RouteTable(Vec<Route>);

#[derive(Debug)]
struct Route {
    template: Arc<str>,
    methods: Vec<Method>,
    /// The methods that take a body.
    with_body: Vec<Method>,
}

impl RouteTable {
    /// The routes of an API, and pages with their methods.
    pub(crate) fn new<A: OpenApi>(pages: &[(&str, Vec<Method>)]) -> Self {
        let api = A::meta();
        let is_empty = api.is_empty();
        let api = api.into_iter().flat_map(|api| api.paths).map(|path| Route {
            template: path.path.into(),
            with_body: {
                let takes_body = path.operations.iter().filter(|operation| operation.request.is_some());
                takes_body.map(|operation| operation.method.clone()).collect()
            },
            methods: path.operations.into_iter().map(|operation| operation.method).collect(),
        });
        let pages = pages.iter().map(|(path, methods)| Route {
            template: (*path).into(),
            methods: methods.clone(),
            with_body: methods.iter().filter(|method| **method == Method::POST).cloned().collect(),
        });
        let others = [(files::READ, Method::GET), (files::UPLOAD, Method::PUT), (paths::MCP, Method::POST)];
        let others = others.map(|(path, method)| Route {
            template: path.into(),
            with_body: if method == Method::GET { Vec::new() } else { vec![method.clone()] },
            methods: vec![method],
        });
        let others = if is_empty { Vec::new() } else { others.into() };
        Self(api.chain(pages).chain(others).collect())
    }

    /// The value of `Allow` for a path; HEAD comes with GET.
    pub(crate) fn allow(&self, path: &str) -> String {
        let mut allowed: Vec<&str> = Vec::new();
        // A path without parameters hides a matching one with parameters, and all its methods.
        for method in self.find(path).into_iter().flat_map(|route| &route.methods) {
            allowed.push(method.as_str());
            if *method == Method::GET {
                allowed.push("HEAD");
            }
        }
        allowed.sort_unstable();
        allowed.dedup();
        allowed.join(", ")
    }

    /// The template a path belongs to, static segments before parameters; `None` for an unknown path.
    pub(crate) fn template(&self, path: &str) -> Option<&Arc<str>> {
        self.find(path).map(|route| &route.template)
    }

    /// The maximum body of a request of an authenticated caller; `max` if the route has one.
    pub(crate) fn body_cap(&self, method: &Method, path: &str, max: usize) -> usize {
        let takes_body = self.find(path).is_some_and(|route| route.with_body.contains(method));
        if takes_body { max } else { STRANGER.min(max) }
    }

    fn find(&self, path: &str) -> Option<&Route> {
        let fitting = self.0.iter().filter(|route| matches(&route.template, path));
        fitting.min_by_key(|route| route.template.matches(['{', ':']).count())
    }
}

fn matches(template: &str, path: &str) -> bool {
    let (mut expected, mut found) = (template.split('/'), path.split('/'));
    loop {
        match (expected.next(), found.next()) {
            (None, None) => return true,
            (Some(expected), Some(found)) => {
                let is_parameter = expected.starts_with([':', '{']) && !found.is_empty();
                if !is_parameter && expected != found {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_find_their_template() {
        let route = |template: &str, methods: &[Method]| Route {
            template: template.into(),
            methods: methods.to_vec(),
            with_body: methods.iter().filter(|method| **method == Method::POST).cloned().collect(),
        };
        let table = RouteTable(vec![
            route("/api/bots/{id}", &[Method::GET, Method::DELETE]),
            route("/api/bots/bind", &[Method::POST]),
        ]);
        assert_eq!(table.allow("/api/bots/bot_1"), "DELETE, GET, HEAD");
        assert_eq!(table.allow("/api/bots/bind"), "POST");
        let template = |path: &str| table.template(path).map(|template| &**template);
        assert_eq!(template("/api/bots/bind"), Some("/api/bots/bind"));
        assert_eq!(template("/api/bots/x"), Some("/api/bots/{id}"));
        assert_eq!(table.body_cap(&Method::POST, "/api/bots/bind", 1 << 20), 1 << 20);
        assert_eq!(table.body_cap(&Method::GET, "/api/bots/bind", 1 << 20), STRANGER);
        assert_eq!(table.body_cap(&Method::POST, "/nowhere", 1000), 1000);
        assert_eq!(template("/api/bots/"), None);
        assert_eq!(template("/api/bots/x/y"), None);
    }
}
