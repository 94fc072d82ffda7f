//! The rules of `plugins lint`: problems of a source that can be found without a message.

use hub_core::{
    plugins::{
        Manifest,
        debug::{SAMPLE_URL, sample_message},
        manifest,
    },
    sandbox::{
        Body, Dialect, HookInput, HookRun, Hooks, NoFetch, PluginRequest, Sandbox, ScriptError, Source,
        Token, tokens,
    },
};
use serde_json::value::to_raw_value;

use super::lint::Finding;
use crate::exit::Failure;

/// Names of other environments, and alternatives.
const ALTERNATIVES: [(&str, &str); 26] = [
    ("require", "there are no modules: a plugin is one file"),
    ("importScripts", "there are no modules: a plugin is one file"),
    ("import", "there are no modules: a plugin is one file"),
    ("module", "declare function onRequest(ctx), or export it"),
    ("exports", "declare function onRequest(ctx), or export it"),
    ("eval", "a plugin cannot compile code at run time"),
    ("Function", "a plugin cannot compile code at run time"),
    ("WebAssembly", "a plugin cannot compile code at run time"),
    ("setTimeout", "there are no timers: a hook may await promises and fetch"),
    ("setInterval", "there are no timers: a hook may await promises and fetch"),
    ("setImmediate", "there are no timers: a hook may await promises and fetch"),
    ("XMLHttpRequest", "use fetch, and @connect for its host"),
    ("GM_xmlhttpRequest", "use fetch, and @connect for its host"),
    ("WebSocket", "use fetch, and @connect for its host"),
    ("Headers", "fetch takes an object of names and values"),
    ("Request", "fetch takes a URL and an object"),
    ("FormData", "use URLSearchParams"),
    ("Buffer", "use Uint8Array, TextEncoder, atob and btoa"),
    ("performance", "use Date.now()"),
    ("Intl", "dates and numbers have toLocaleString(); a time zone is an offset, such as +08:00"),
    ("process", "a plugin has no environment; what it keeps between its hooks is in ctx.state"),
    ("localStorage", "what a plugin keeps between its hooks is in ctx.state"),
    ("window", "use globalThis"),
    ("self", "use globalThis"),
    ("global", "use globalThis"),
    ("ctx", "it is the argument of a hook"),
];

pub async fn check(sandbox: &Sandbox, file: &str, source: &str) -> Result<Vec<Finding>, Failure> {
    let mut found = Findings { file, found: Vec::new() };
    if let Err(error) = manifest::check_size(source) {
        found.error(1, None, "metadata", error.message().to_owned());
        return Ok(found.found);
    }
    let manifest = found.metadata(source);
    let checked = sandbox.check("cli", &Source::new(source)).await.map_err(hub_core::Error::from)?;
    if let Some(error) = checked {
        found.error(error.line.unwrap_or(1), error.column, "syntax", error.message);
        return Ok(found.found);
    }
    let tokens = tokens(source);
    let unknown = sandbox.unknown_names("cli", &Source::new(source)).await.map_err(hub_core::Error::from)?;
    found.fetch_without_connect(&tokens, manifest.as_ref());
    found.unavailable(&tokens, &unknown, manifest.as_ref());
    found.top_level(sandbox, source, &tokens, &manifest.unwrap_or_default()).await?;
    found.found.sort_by_key(|finding| finding.line);
    Ok(found.found)
}

struct Findings<'f> {
    file: &'f str,
    found: Vec<Finding>,
}

impl Findings<'_> {
    fn add(
        &mut self,
        line: u32,
        column: Option<u32>,
        severity: &'static str,
        rule: &'static str,
        message: String,
    ) {
        self.found.push(Finding { file: self.file.to_owned(), line, column, severity, rule, message });
    }

    fn error(&mut self, line: u32, column: Option<u32>, rule: &'static str, message: String) {
        self.add(line, column, "error", rule, message);
    }

    /// Checks the metadata block; returns it if it is valid.
    fn metadata(&mut self, source: &str) -> Option<Manifest> {
        let manifest = match Manifest::inspect(source) {
            Err(flaws) => {
                for flaw in flaws {
                    self.error(flaw.line, Some(flaw.column), "metadata", flaw.message);
                }
                return None;
            }
            Ok(manifest) => manifest,
        };
        if manifest.dialect.is_none() {
            let message = "there is no metadata block: // ==UserScript== (--fix adds one)";
            self.error(1, None, "metadata", message.to_owned());
        } else if manifest.name.is_none() {
            let message = "the metadata block has no @name (--fix adds one)";
            self.error(1, None, "metadata", message.to_owned());
        }
        for note in &manifest.warnings {
            self.add(note.line, Some(note.column), "warning", "metadata", note.message.clone());
        }
        Some(manifest)
    }

    /// Names that neither the source nor the sandbox declares, `eval` and `import()`.
    fn unavailable(&mut self, tokens: &[Token<'_>], unknown: &[String], manifest: Option<&Manifest>) {
        let text = |at: Option<usize>| at.and_then(|at| tokens.get(at)).map_or("", |token| token.text);
        let has_global_ctx = manifest.is_some_and(|m| m.sandbox_dialect() == Dialect::WebhookPlugin);
        let places = |name: &str, before: &str| {
            let at = (0..tokens.len()).filter(|at| tokens[*at].text == name);
            at.filter(|at| text(at.checked_sub(1)) == before).count()
        };
        for name in unknown {
            // The source looks whether it is there, or defines it.
            let is_guarded = places(name, "typeof") > 0;
            let is_defined = (1..tokens.len()).any(|at| {
                tokens[at].text == name
                    && text(at.checked_sub(2)) == "globalThis"
                    && tokens[at - 1].text == "."
            });
            if is_guarded || is_defined || (name == "ctx" && has_global_ctx) {
                continue;
            }
            let is_use = |at: &usize| {
                let before = text(at.checked_sub(1));
                let is_declared = ["function", "const", "let", "var", "class", "."].contains(&before);
                tokens[*at].text == name && !is_declared && text(Some(at + 1)) != ":"
            };
            // What declares the same name for itself is deeper than the use that is not declared, most likely.
            let uses = (0..tokens.len()).filter(is_use).map(|at| &tokens[at]);
            let place = uses.min_by_key(|token| token.depth);
            self.absent(name, place);
        }
        for (at, token) in tokens.iter().enumerate() {
            let is_call = ["eval", "import"].contains(&token.text) && text(Some(at + 1)) == "(";
            if is_call && text(at.checked_sub(1)) != "." {
                self.absent(token.text, Some(token));
            }
        }
    }

    fn absent(&mut self, name: &str, place: Option<&Token<'_>>) {
        let message = match ALTERNATIVES.iter().find(|(absent, _)| *absent == name) {
            Some((_, instead)) => format!("{name} is not available: {instead}"),
            None => format!("{name} is not defined"),
        };
        let line = place.map_or(1, |token| token.line);
        self.error(line, place.map(|token| token.column), "absent", message);
    }

    fn fetch_without_connect(&mut self, tokens: &[Token<'_>], manifest: Option<&Manifest>) {
        if manifest.is_none_or(|manifest| !manifest.connects.is_empty()) {
            return;
        }
        let text = |at: Option<usize>| at.and_then(|at| tokens.get(at)).map_or("", |token| token.text);
        let declares = |word: &str| matches!(word, "function" | "const" | "let" | "var" | "class");
        let is_declared = tokens.windows(2).any(|pair| declares(pair[0].text) && pair[1].text == "fetch");
        for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.text == "fetch") {
            let before = text(at.checked_sub(1));
            // A method of that name is the author's own.
            let is_method = || {
                let inside = &tokens[at + 1..];
                let end = inside.iter().position(|one| one.text == ")" && one.depth == token.depth + 1);
                end.and_then(|end| inside.get(end + 1)).is_some_and(|one| one.text == "{")
            };
            let is_ours = before != "." || text(at.checked_sub(2)) == "ctx";
            if text(Some(at + 1)) == "(" && is_ours && before != "function" && !is_declared && !is_method() {
                let message = "fetch needs a @connect line that names the host".to_owned();
                self.error(token.line, Some(token.column), "connect", message);
            }
        }
    }

    /// Runs the top level, and looks for hooks afterwards. No hook is called.
    async fn top_level(
        &mut self,
        sandbox: &Sandbox,
        source: &str,
        tokens: &[Token<'_>],
        manifest: &Manifest,
    ) -> Result<(), Failure> {
        let message =
            to_raw_value(&sample_message("", "user_1", "", 0)).map_err(hub_core::Error::internal)?;
        let request = PluginRequest {
            url: SAMPLE_URL.to_owned(),
            method: "POST".to_owned(),
            headers: std::collections::BTreeMap::new(),
            body: Body::Json(message.clone()),
        };
        let mut input = HookInput::on_request(message, request);
        input.dialect = manifest.sandbox_dialect();
        input.grants.fetch = !manifest.connects.is_empty();
        input.only_load = true;
        let run = HookRun { tenant: "cli".to_owned(), source: Source::new(source), input };
        let outcome = sandbox.run(run, &NoFetch).await.map_err(hub_core::Error::from)?;
        let Some(ScriptError { message, line, column, .. }) = outcome.error else {
            if outcome.hooks.is_some_and(Hooks::are_none) {
                self.no_hook(tokens);
            }
            return Ok(());
        };
        // The response of a fetch is not known.
        if message.contains("fetch reaches nothing") {
            return Ok(());
        }
        let line = line.unwrap_or(1);
        if !self.found.iter().any(|finding| finding.line == line && finding.severity == "error") {
            self.error(line, column, "top-level", format!("the top level fails: {message}"));
        }
        Ok(())
    }

    fn no_hook(&mut self, tokens: &[Token<'_>]) {
        let is_alike =
            |token: &&Token<'_>| ["onrequest", "onresponse"].contains(&token.text.to_lowercase().as_str());
        let (line, column, hint) = match tokens.iter().find(is_alike) {
            Some(token) if ["onRequest", "onResponse"].contains(&token.text) => {
                (token.line, Some(token.column), "; declare it at the top level, or export it".to_owned())
            }
            Some(token) => {
                let is_request = token.text.len() == "onRequest".len();
                let meant = if is_request { "onRequest" } else { "onResponse" };
                (token.line, Some(token.column), format!("; did you mean {meant}?"))
            }
            None => (1, None, String::new()),
        };
        let message = format!("there is no function onRequest or onResponse, so nothing runs{hint}");
        self.error(line, column, "hooks", message);
    }
}
