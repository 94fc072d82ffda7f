//! Verification of webhook signatures: recipes for receivers, and a check of a pasted request.

use hub_core::channels::{Channel, sinks::AuthMethod};
use maud::{Markup, html};

use crate::console::{
    assets,
    page::Ask,
    parts::code,
    words::{Signatures, Text},
};

/// Recipes by language; a test runs those whose language is installed.
const RECIPES: [(&str, &str); 6] = [
    ("Rust", include_str!("../recipes/rust.txt")),
    ("Node", include_str!("../recipes/node.txt")),
    ("Python", include_str!("../recipes/python.txt")),
    ("Go", include_str!("../recipes/go.txt")),
    ("PHP", include_str!("../recipes/php.txt")),
    ("Shell", include_str!("../recipes/shell.txt")),
];

/// A sentence in the language of the page.
type Sentence = fn(&Signatures) -> Text;

/// Messages of the script, by their names in `signature.js`.
const SAID: [(&str, Sentence); 25] = [
    ("matches", |words| words.matches),
    ("none", |words| words.none),
    ("absent", |words| words.absent),
    ("malformed", |words| words.malformed),
    ("form_own", |words| words.form_own),
    ("form_standard", |words| words.form_standard),
    ("upper_case", |words| words.upper_case),
    ("no_prefix", |words| words.no_prefix),
    ("is_base64", |words| words.is_base64),
    ("is_hex", |words| words.is_hex),
    ("newline_lost", |words| words.newline_lost),
    ("newline_added", |words| words.newline_added),
    ("line_ends", |words| words.line_ends),
    ("serialized", |words| words.serialized),
    ("key_text", |words| words.key_text),
    ("key_bare", |words| words.key_bare),
    ("key_prefix", |words| words.key_prefix),
    ("key_space", |words| words.key_space),
    ("key_decoded", |words| words.key_decoded),
    ("secret_or_body", |words| words.secret_or_body),
    ("no_number", |words| words.no_number),
    ("too_old", |words| words.too_old),
    ("too_early", |words| words.too_early),
    ("milliseconds", |words| words.milliseconds),
    ("case", |words| words.case),
];

/// The section of the page.
pub(super) fn section(ask: &Ask, channel: &Channel) -> Markup {
    let words = &ask.words.webhooks;
    html! {
        section aria-labelledby="verify" {
            h2 #verify { (words.verify) }
            p { @if channel.webhook.auth.settings.method == AuthMethod::Hmac { (words.verify_help) } @else { (words.verify_none) } }
            @for (language, source) in RECIPES {
                details { summary { (language) } (code::copied(ask.words, source.trim_end())) }
            }
            p { (words.local) }
            (code::copied(ask.words, "hub-cli listen --forward-to http://localhost:3000"))
            (check(ask))
        }
    }
}

/// The check runs in the browser alone: the form has no button that sends it.
fn check(ask: &Ask) -> Markup {
    let words = &ask.words.signatures;
    html! {
        h3 { (words.check) }
        p.muted { (words.check_help) }
        div #signature-hint data-signature-hint data-script {
            p { (words.elsewhere) }
            (code::copied(ask.words, "hub-cli signature verify --secret-file hook.secret --body body.json --headers request.txt"))
        }
        form.fields #signature-form method="dialog" data-signature data-script hidden {
            div.field {
                label for="signature-headers" { (words.headers) }
                textarea #signature-headers name="headers" rows="5" spellcheck="false" required
                    aria-describedby="signature-headers-help" {}
                p.help #signature-headers-help { (words.headers_help) }
            }
            div.field {
                label for="signature-body" { (words.body) }
                textarea #signature-body name="body" rows="5" spellcheck="false" {}
            }
            div.field {
                label for="signature-secret" { (words.secret) }
                input #signature-secret name="secret" type="password" required autocomplete="off"
                    aria-describedby="signature-secret-help";
                p.help #signature-secret-help { (words.secret_help) }
            }
            p.actions { button { (words.check_now) } }
            div role="status" { ul.findings data-findings {} }
        }
        @for (name, text) in SAID { template data-word={ "signature_" (name) } { (text(words)) } }
        script type="module" src=(assets::path("signature.js")) {}
    }
}
