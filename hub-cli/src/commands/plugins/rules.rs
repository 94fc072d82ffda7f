//! The rules of `plugins lint`: problems of a source that can be found without a message.

use hub_core::{
    plugins::{
        Manifest,
        debug::{SAMPLE_URL, sample_message},
        manifest,
    },
    sandbox::{
        Body, HookInput, HookRun, NoFetch, PluginRequest, Sandbox, ScriptError, Source, Token, tokens,
    },
};
use serde_json::value::to_raw_value;

use super::lint::Finding;
use crate::exit::Failure;

/// Prefix of the error that the appended line throws after the top level.
const HOOKS: &str = "hub-cli plugins lint: ";

/// Names that are not available in plugins, and alternatives.
const ABSENT: [(&str, &str); 12] = [
    ("require", "there are no modules: a plugin is one file"),
    ("importScripts", "there are no modules: a plugin is one file"),
    ("import", "there are no modules: a plugin is one file"),
    ("eval", "a plugin cannot compile code at run time"),
    ("Function", "a plugin cannot compile code at run time"),
    ("setTimeout", "there are no timers: a hook may await promises and fetch"),
    ("setInterval", "there are no timers: a hook may await promises and fetch"),
    ("setImmediate", "there are no timers: a hook may await promises and fetch"),
    ("XMLHttpRequest", "use fetch, and @connect for its host"),
    ("GM_xmlhttpRequest", "use fetch, and @connect for its host"),
    ("Buffer", "use Uint8Array"),
    ("WebAssembly", "a plugin cannot compile code at run time"),
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
    found.names(&tokens, manifest.as_ref());
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

    /// Names of other environments, and `fetch` without `@connect`.
    fn names(&mut self, tokens: &[Token<'_>], manifest: Option<&Manifest>) {
        let text = |at: Option<usize>| at.and_then(|at| tokens.get(at)).map_or("", |token| token.text);
        let is_declared = |name: &str| {
            let declares = |word: &str| matches!(word, "function" | "const" | "let" | "var" | "class");
            tokens.windows(2).any(|pair| declares(pair[0].text) && pair[1].text == name)
        };
        for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.is_name()) {
            let (before, after) = (text(at.checked_sub(1)), text(Some(at + 1)));
            // A method of that name is the author's own.
            let is_method = || {
                let inside = &tokens[at + 1..];
                let end = inside.iter().position(|one| one.text == ")" && one.depth == token.depth + 1);
                end.and_then(|end| inside.get(end + 1)).is_some_and(|one| one.text == "{")
            };
            let is_used = after == "(" || before == "new" || (after == "." && token.text != "import");
            if !is_used || before == "function" || (after == "(" && is_method()) {
                continue;
            }
            let place = (token.line, Some(token.column));
            let is_member = before == ".";
            if token.text == "fetch" && manifest.is_some_and(|manifest| manifest.connects.is_empty()) {
                let is_ours = !is_member || text(at.checked_sub(2)) == "ctx";
                if is_ours && !is_declared("fetch") {
                    let message = "fetch needs a @connect line that names the host".to_owned();
                    self.error(place.0, place.1, "connect", message);
                }
                continue;
            }
            let absent = ABSENT.iter().find(|(name, _)| *name == token.text);
            if let Some((name, instead)) = absent.filter(|(name, _)| !is_member && !is_declared(name)) {
                self.error(place.0, place.1, "absent", format!("{name} is not available: {instead}"));
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
        let probe = format!("{source}\nthrow `{HOOKS}${{typeof onRequest}} ${{typeof onResponse}}`;\n");
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
        let run = HookRun { tenant: "cli".to_owned(), source: Source::new(probe), input };
        let outcome = sandbox.run(run, &NoFetch).await.map_err(hub_core::Error::from)?;
        let Some(ScriptError { message, line, column, .. }) = outcome.error else { return Ok(()) };
        match message.strip_prefix("thrown: ").and_then(|thrown| thrown.strip_prefix(HOOKS)) {
            Some(hooks) if hooks.contains("function") => {}
            Some(_) => {
                let alike = tokens
                    .iter()
                    .find(|token| ["onrequest", "onresponse"].contains(&token.text.to_lowercase().as_str()));
                let (place, hint) = match alike {
                    Some(token) => {
                        let meant =
                            if token.text.len() == "onRequest".len() { "onRequest" } else { "onResponse" };
                        ((token.line, Some(token.column)), format!("; did you mean {meant}?"))
                    }
                    None => ((1, None), String::new()),
                };
                let message = format!("there is no function onRequest or onResponse, so nothing runs{hint}");
                self.error(place.0, place.1, "hooks", message);
            }
            // The response of a fetch is not known.
            None if message.contains("fetch reaches nothing") => {}
            None => {
                let line = line.unwrap_or(1);
                if !self.found.iter().any(|finding| finding.line == line && finding.severity == "error") {
                    self.error(line, column, "top-level", format!("the top level fails: {message}"));
                }
            }
        }
        Ok(())
    }
}
