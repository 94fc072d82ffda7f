//! Forms and their fields. A rejected form shows the submitted values, and each problem next to its field.

use std::borrow::Cow;

use hub_core::Error;
use maud::{Markup, html};

use crate::console::{
    forms::Submitted,
    page::{Ask, PAGE_TOKEN},
    refusals,
    words::Words,
};

/// A form of a page: the fields are rendered with it.
#[derive(Clone, Copy)]
pub(in crate::console) struct Form<'a> {
    words: &'static Words,
    /// Values to show again: this form was rejected, or another action of it ran.
    submitted: Option<&'a Submitted>,
    action: &'static str,
}

/// A field with its label.
pub(in crate::console) struct Field<'a> {
    pub(in crate::console) name: &'a str,
    pub(in crate::console) label: &'a str,
    pub(in crate::console) help: Option<&'a str>,
    /// `text`, `number`, `url`, `password`, …
    pub(in crate::console) kind: &'static str,
    pub(in crate::console) value: String,
    pub(in crate::console) is_required: bool,
    /// Maximum length in characters; of a file in bytes.
    pub(in crate::console) max: Option<u32>,
}

impl Default for Field<'_> {
    fn default() -> Self {
        Self {
            name: "",
            label: "",
            help: None,
            kind: "text",
            value: String::new(),
            is_required: false,
            max: None,
        }
    }
}

impl<'a> Form<'a> {
    /// The form of an action of this page.
    pub(in crate::console) fn new(ask: &'a Ask, action: &'static str) -> Self {
        let submitted = ask.submitted.as_ref().filter(|form| form.action == action && form.refused.is_some());
        Self { words: ask.words, submitted, action }
    }

    /// Keeps the submitted values also after another action of the same form, even if it succeeded.
    pub(in crate::console) fn or(self, ask: &'a Ask, action: &str) -> Self {
        let other = ask.submitted.as_ref().filter(|form| form.action == action);
        Self { submitted: self.submitted.or(other), ..self }
    }

    /// The form around its fields, with its button.
    pub(in crate::console) fn render(self, fields: &Markup, button: &str) -> Markup {
        html! { form.fields method="post" data-enhance { (fields) (self.button(button)) } }
    }

    /// The button of the form.
    pub(in crate::console) fn button(self, text: &str) -> Markup {
        html! { p.actions { button name="do" value=(self.action) { (text) } } }
    }

    /// A hidden field with which a repeated form has one effect.
    pub(in crate::console) fn once(self, ask: &Ask) -> Markup {
        let once =
            self.submitted.and_then(|form| form.field("once")).map_or_else(|| ask.new_once(), str::to_owned);
        html! { input type="hidden" name="once" value=(once); }
    }

    /// Returns the submitted value of a field, or else its current value.
    pub(in crate::console) fn value(self, name: &str, now: &str) -> String {
        self.submitted.and_then(|form| form.field(name)).unwrap_or(now).to_owned()
    }

    /// Whether the form shows submitted values again.
    pub(in crate::console) const fn is_refused(self) -> bool {
        self.submitted.is_some()
    }

    /// Returns the error of a field or of an item or field inside it.
    fn problem(self, name: &str) -> Option<&'a str> {
        let details = self.submitted?.refused.as_ref()?.details();
        let found = details.iter().find(|detail| {
            detail.field == name
                || detail.field.strip_prefix(name).is_some_and(|rest| rest.starts_with(['[', '.']))
        });
        found.map(|detail| &*detail.reason)
    }

    /// A field of one line. Passwords and secrets are empty again.
    pub(in crate::console) fn field(self, field: &Field<'_>) -> Markup {
        let id = format!("{}-{}", self.action, field.name);
        let is_file = field.kind == "file";
        let value = match field.kind {
            "password" => Some(String::new()),
            // Browsers do not let a page choose a file.
            "file" => None,
            _ => Some(self.value(field.name, &field.value)),
        };
        let problem = self.problem(field.name);
        let described = described(&id, field.help.is_some(), problem.is_some());
        html! {
            div.field {
                label for=(id) { (field.label) }
                input id=(id) name=(field.name) type=(field.kind) value=[value] required[field.is_required]
                    maxlength=[field.max.filter(|_| !is_file)] data-max-bytes=[field.max.filter(|_| is_file)] autocomplete=[(!is_file).then_some("off")] aria-invalid=[problem.map(|_| "true")]
                    aria-describedby=[described] autofocus[problem.is_some()];
                (help(&id, field.help))
                (self.problem_text(&id, problem))
            }
        }
    }

    /// A field of several lines.
    pub(in crate::console) fn area(self, field: &Field<'_>, rows: u32) -> Markup {
        let id = format!("{}-{}", self.action, field.name);
        let problem = self.problem(field.name);
        let described = described(&id, field.help.is_some(), problem.is_some());
        html! {
            div.field {
                label for=(id) { (field.label) }
                textarea id=(id) name=(field.name) rows=(rows) required[field.is_required] spellcheck="false"
                    aria-invalid=[problem.map(|_| "true")] aria-describedby=[described] {
                    (self.value(field.name, &field.value))
                }
                (help(&id, field.help))
                (self.problem_text(&id, problem))
            }
        }
    }

    pub(in crate::console) fn checkbox(self, name: &str, label: &str, now: bool) -> Markup {
        let is_on = self.value(name, if now { "true" } else { "false" }) == "true";
        html! {
            div.field.check {
                input type="hidden" name=(name) value="false";
                label { input type="checkbox" name=(name) value="true" checked[is_on]; " " (label) }
            }
        }
    }

    /// A switch that removes what a field has: the path of the field in the request, which is then `null`.
    pub(in crate::console) fn clear(self, name: &str, label: &str) -> Markup {
        let name = format!("{name}.clear");
        let is_on = self.value(&name, "false") == "true";
        html! {
            div.field.check { label { input type="checkbox" name=(name) value="true" checked[is_on]; " " (label) } }
        }
    }

    /// Several values of a list: each with its label and whether it is chosen now.
    pub(in crate::console) fn choices(
        self,
        name: &str,
        label: &str,
        options: &[(&str, &str, bool)],
    ) -> Markup {
        let chosen = |value: &str, now: bool| match self.submitted {
            Some(form) => form.fields.iter().any(|(field, typed)| field == name && typed == value),
            None => now,
        };
        let id = format!("{}-{name}", self.action);
        let problem = self.problem(name);
        html! {
            fieldset.field id=(id) tabindex="-1" aria-describedby=[described(&id, false, problem.is_some())] {
                legend { (label) }
                @for (value, text, now) in options {
                    label.choice {
                        input type="checkbox" name=(name) value=(value) checked[chosen(value, *now)]; " " (text)
                    }
                }
                (self.problem_text(&id, problem))
            }
        }
    }

    /// A choice: values with their labels.
    pub(in crate::console) fn select(
        self,
        name: &str,
        label: &str,
        now: &str,
        options: &[(&str, &str)],
    ) -> Markup {
        let id = format!("{}-{name}", self.action);
        let chosen = self.value(name, now);
        let problem = self.problem(name);
        html! {
            div.field {
                label for=(id) { (label) }
                select id=(id) name=(name) aria-invalid=[problem.map(|_| "true")]
                    aria-describedby=[described(&id, false, problem.is_some())] {
                    @for (value, text) in options { option value=(value) selected[*value == chosen] { (text) } }
                }
                (self.problem_text(&id, problem))
            }
        }
    }

    fn problem_text(self, id: &str, problem: Option<&str>) -> Markup {
        html! {
            @if let Some(problem) = problem {
                @let (text, lang) = reason(self.words, problem);
                p.problem id={ (id) "-problem" } lang=[lang] { (text) }
            }
        }
    }
}

fn help(id: &str, text: Option<&str>) -> Markup {
    html! { @if let Some(text) = text { p.help id={ (id) "-help" } { (text) } } }
}

fn described(id: &str, has_help: bool, has_problem: bool) -> Option<String> {
    let ids = [(has_help, "help"), (has_problem, "problem")];
    let ids: Vec<_> = ids.into_iter().filter(|(is, _)| *is).map(|(_, name)| format!("{id}-{name}")).collect();
    (!ids.is_empty()).then(|| ids.join(" "))
}

/// A reason in the language of the page, or else as the API reports it, which is English. The translations have a `#` in
/// place of each number.
fn reason<'r>(words: &Words, reason: &'r str) -> (Cow<'r, str>, Option<&'static str>) {
    let (mut pattern, mut numbers) = (String::new(), Vec::<String>::new());
    let mut is_in_number = false;
    for c in reason.chars() {
        match (c.is_ascii_digit(), numbers.last_mut()) {
            (true, Some(number)) if is_in_number => number.push(c),
            (true, _) => {
                pattern.push('#');
                numbers.push(c.into());
            }
            (false, _) => pattern.push(c),
        }
        is_in_number = c.is_ascii_digit();
    }
    match words.refusals.reasons.iter().find(|(english, _)| *english == pattern) {
        Some((_, translated)) => {
            let fill = |text: String, number: &String| text.replacen('#', number, 1);
            (numbers.iter().fold((*translated).to_owned(), fill).into(), None)
        }
        None => (reason.into(), (words.lang != "en").then_some("en")),
    }
}

/// The hidden field that only this page, opened in this session, contains.
pub(in crate::console) fn page_token(ask: &Ask) -> Markup {
    html! { input type="hidden" name=(PAGE_TOKEN) value=(ask.page_token()); }
}

/// A link to *Confirm it is you*, which leads back to this page.
pub(in crate::console) fn confirm(ask: &Ask) -> Markup {
    let back = ask.with_queries(&[]);
    let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("back", &back).finish();
    html! { a.button href={ "/console/confirm?" (query) } { (ask.words.account.confirm) } }
}

/// Renders the error of a form: the wrong fields with links to them, or else the sentence for its code.
pub(in crate::console) fn refusal(ask: &Ask, error: &Error) -> Markup {
    let words = ask.words;
    let (title, said) = refusals::sentence(words, error.code());
    let action = ask.submitted.as_ref().map_or("", |form| &form.action);
    html! {
        div.refused role="alert" {
            @if error.details().is_empty() {
                p { strong { (title) ". " } (said) }
                @if refusals::is_session_too_old(error) {
                    p { (confirm(ask)) }
                }
                (refusals::details(words, error, &ask.request_id))
            } @else {
                p { strong { (words.common.problems) } }
                ul {
                    @for detail in error.details() {
                        @let (text, lang) = reason(words, &detail.reason);
                        @let field = detail.field.split('[').next().unwrap_or_default();
                        li { a href={ "#" (action) "-" (field) } { code data-computed { (detail.field) } } " "
                            span lang=[lang] { (text) } }
                    }
                }
                (refusals::advice(words, error))
            }
        }
    }
}
