//! Which methods each path has: for the `Allow` header of a 405 and for the label of a request in the log.

use poem::http::Method;
use poem_openapi::OpenApi;

/// The paths of the application with their methods.
#[derive(Debug)]
pub(crate) struct RouteTable(Vec<Route>);

#[derive(Debug)]
struct Route {
    template: String,
    methods: Vec<Method>,
}

impl RouteTable {
    /// The routes of an API and further GET pages.
    pub(crate) fn new<A: OpenApi>(pages: &[&str]) -> Self {
        let api = A::meta().into_iter().flat_map(|api| api.paths).map(|path| Route {
            template: path.path,
            methods: path.operations.into_iter().map(|operation| operation.method).collect(),
        });
        let pages =
            pages.iter().map(|path| Route { template: (*path).to_owned(), methods: vec![Method::GET] });
        Self(api.chain(pages).collect())
    }

    /// The value of `Allow` for a path; HEAD comes with GET.
    pub(crate) fn allow(&self, path: &str) -> String {
        let mut allowed: Vec<&str> = Vec::new();
        let of_path = self.0.iter().filter(|route| matches(&route.template, path));
        for method in of_path.flat_map(|route| &route.methods) {
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
    pub(crate) fn template(&self, path: &str) -> Option<&str> {
        let fitting = self.0.iter().map(|route| route.template.as_str());
        fitting
            .filter(|template| matches(template, path))
            .min_by_key(|template| template.matches('{').count())
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
            template: template.to_owned(),
            methods: methods.to_vec(),
        };
        let table = RouteTable(vec![
            route("/api/bots/{id}", &[Method::GET, Method::DELETE]),
            route("/api/bots/bind", &[Method::POST]),
        ]);
        assert_eq!(table.allow("/api/bots/bot_1"), "DELETE, GET, HEAD");
        assert_eq!(table.allow("/api/bots/bind"), "DELETE, GET, HEAD, POST");
        assert_eq!(table.template("/api/bots/bind"), Some("/api/bots/bind"));
        assert_eq!(table.template("/api/bots/x"), Some("/api/bots/{id}"));
        assert_eq!(table.template("/api/bots/"), None);
        assert_eq!(table.template("/api/bots/x/y"), None);
    }
}
