//! `/login/reset`: the page on which a user sets a new password with a link from an administrator. The token of the
//! link stays in the browser until the form is sent.

use maud::{Markup, html};
use poem::{Request, Response, handler, web::Query};

use super::{PageQuery, answer, frame, language, texts::Texts};

#[handler]
pub(super) fn reset_page(request: &Request, query: Option<Query<PageQuery>>) -> Response {
    let query = query.map(|query| query.0).unwrap_or_default();
    let texts = language(request, query.lang.as_deref());
    answer(&frame(texts, texts.reset_title, "/login/reset.js", "", &page(texts)))
}

fn page(texts: &Texts) -> Markup {
    html! {
        section aria-labelledby="reset-title" {
            h2 #reset-title { (texts.reset_title) }
            form #set-password hidden {
                p { (texts.reset_help) }
                label for="new-password" { (texts.new_password) }
                input #new-password name="new_password" type="password" autocomplete="new-password" required
                    minlength="8" maxlength="256" aria-describedby="password-hint";
                p #password-hint.note { (texts.password_hint) }
                label for="again" { (texts.again) }
                input #again name="again" type="password" autocomplete="new-password" required maxlength="256";
                button type="submit" { (texts.set_password) }
            }
            div #done hidden {
                p { (texts.set_for) strong #whose {} }
                p { a.button #to-sign-in href="/login" { (texts.to_sign_in) } }
            }
        }
    }
}
