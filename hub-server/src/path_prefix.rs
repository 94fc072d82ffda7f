//! A hub below a path: behind a reverse proxy that serves it at `https://example.com/hub/` and strips `/hub`, its routes
//! begin with `/` as always. What it sends to browsers gets the path here, in one place: addresses in attributes of
//! pages, and redirects. Scripts find the path in the attribute `data-base` of the document.

use poem::{
    Endpoint, Request, Response, Result,
    http::{HeaderValue, header},
};

/// Attributes of pages that contain addresses.
const ATTRIBUTES: [&str; 4] = ["href", "src", "action", "formaction"];

pub(crate) struct PathPrefix<E> {
    inner: E,
    /// Empty, or the path without the `/` at its end.
    prefix: String,
}

impl<E> PathPrefix<E> {
    /// The layer around the whole application.
    pub(crate) const fn new(inner: E, prefix: String) -> Self {
        Self { inner, prefix }
    }
}

impl<E: Endpoint<Output = Response>> Endpoint for PathPrefix<E> {
    type Output = Response;

    async fn call(&self, request: Request) -> Result<Response> {
        let mut response = self.inner.call(request).await?;
        if self.prefix.is_empty() {
            return Ok(response);
        }
        let location = response.header(header::LOCATION).and_then(|to| moved(&self.prefix, to));
        if let Some(location) = location.and_then(|to| HeaderValue::try_from(to).ok()) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        // Files of people are attachments.
        let is_page = response.header(header::CONTENT_DISPOSITION).is_none()
            && response.content_type().is_some_and(|kind| kind.starts_with("text/html"));
        if is_page {
            let page = response.take_body().into_string().await?;
            response.set_body(with_prefix(&self.prefix, &page));
        }
        Ok(response)
    }
}

/// A path of the hub as browsers reach it; `None` for an address of another site.
fn moved(prefix: &str, to: &str) -> Option<String> {
    (to.starts_with('/') && !to.starts_with("//")).then(|| format!("{prefix}{to}"))
}

/// Text and values of attributes contain no quotes, which are escaped: only attributes look like this.
fn with_prefix(prefix: &str, page: &str) -> String {
    let page = page.replacen("<html ", &format!("<html data-base=\"{prefix}\" "), 1);
    ATTRIBUTES
        .iter()
        .fold(page, |page, name| page.replace(&format!(" {name}=\"/"), &format!(" {name}=\"{prefix}/")))
}

#[cfg(test)]
mod tests {
    use maud::html;

    use super::*;

    #[test]
    fn addresses_of_the_hub_get_the_path_and_nothing_else_does() {
        let page = html! {
            html lang="en" {
                a href="/console" { " href=\"/a\"" }
                a href="https://example.com/b" title=" href=\"/c\"" {}
                a href="?d" {}
                form action="/e" { input value="/f"; button formaction="/g" {} }
                script src="/h.js" {}
            }
        };
        let wanted = html! {
            html data-base="/hub" lang="en" {
                a href="/hub/console" { " href=\"/a\"" }
                a href="https://example.com/b" title=" href=\"/c\"" {}
                a href="?d" {}
                form action="/hub/e" { input value="/f"; button formaction="/hub/g" {} }
                script src="/hub/h.js" {}
            }
        };
        assert_eq!(with_prefix("/hub", &page.0), wanted.0);
    }

    #[test]
    fn redirects_within_the_hub_get_the_path() {
        assert_eq!(
            moved("/hub", "/login?redirect=%2Fconsole").as_deref(),
            Some("/hub/login?redirect=%2Fconsole")
        );
        for elsewhere in ["https://example.com/", "//example.com", "login"] {
            assert_eq!(moved("/hub", elsewhere), None);
        }
    }
}
