//! `/oauth/complete`: the return address of an app that starts its own installation. In a window that was opened for
//! it, the page notifies the opener and closes; otherwise it reports completion.

use maud::{DOCTYPE, html};
use poem::{IntoResponse, Response, Route, get, handler, http::header};

/// The pages under `/oauth`.
pub(crate) const PATHS: [&str; 2] = ["/oauth/complete", "/oauth/complete.js"];

/// The page runs its script file only.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

const SCRIPT: &str = "if (window.opener) {\n  window.opener.postMessage({ type: 'oauth_complete' }, \
                      location.origin);\n  window.close();\n}\n";

/// The page and its file.
pub(crate) fn pages() -> Route {
    Route::new().at("/complete", get(page)).at("/complete.js", get(script))
}

#[handler]
fn page() -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { "Done · Message Hub" }
                link rel="stylesheet" href="/login/style.css";
                script src="/oauth/complete.js" defer {}
            }
            body { main { header { h1 { "Message Hub" } } h2 { "Done" } p { "You can close this window." } } }
        }
    };
    page.into_string()
        .with_content_type("text/html; charset=utf-8")
        .with_header(header::CONTENT_SECURITY_POLICY, POLICY)
        .into_response()
}

#[handler]
fn script() -> Response {
    SCRIPT.with_content_type("text/javascript; charset=utf-8").into_response()
}
