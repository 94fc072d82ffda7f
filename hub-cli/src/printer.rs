//! All output: decides what is written to stdout and stderr, and in which format.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal, Write},
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
};

use hub_core::time::{Clock, Timestamp};
use serde_json::{Map, Value};

use crate::{
    exit::{Exit, Failure},
    jq::Jq,
    screen,
    table::{self, Cell},
};

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Color {
    /// At a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The format of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// Text, tab-separated when not at a terminal.
    Text,
    /// One JSON document, with these fields or with all.
    Json(Option<Vec<String>>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Nothing, not even errors.
    Silent,
    /// Errors.
    Quiet,
    /// Notes for the user.
    Normal,
    /// Also each request to a server.
    Verbose,
}

/// Writes data to stdout and everything else to stderr.
#[derive(Debug, Clone)]
pub struct Printer {
    pub format: Format,
    verbosity: Verbosity,
    /// Whether stdout is a terminal.
    terminal: bool,
    color: bool,
    columns: usize,
    extras: Extras,
}

/// Further options of the output.
#[derive(Debug, Clone, Default)]
pub struct Extras {
    /// Lists are printed as a document per item.
    pub lines: bool,
    /// The jq filter of documents.
    pub jq: Option<Jq>,
    /// Times in tables are absolute instead of relative.
    pub utc: bool,
    pub no_input: bool,
    pub no_progress: bool,
}

/// Whether notes may be printed on stderr, next to documents and errors.
static NOTES_ARE_PRINTED: AtomicBool = AtomicBool::new(true);

static REQUESTS_ARE_PRINTED: AtomicBool = AtomicBool::new(false);

/// Prints a request or its response with `--verbose`, without a printer.
pub fn print_request(text: impl FnOnce() -> String) {
    if REQUESTS_ARE_PRINTED.load(Ordering::Relaxed) {
        write_err(&screen_lines(&text()));
    }
}

/// Disables notes from here on.
pub fn disable_notes() {
    NOTES_ARE_PRINTED.store(false, Ordering::Relaxed);
}

/// Prints a note without a printer.
pub fn print_note(text: &str) {
    if NOTES_ARE_PRINTED.load(Ordering::Relaxed) {
        write_err(text);
    }
}

/// The meaning of a style; never expressed by colour alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Good,
    Bad,
    Doubtful,
    Faint,
    Strong,
}

impl Tone {
    const fn code(self) -> &'static str {
        match self {
            Self::Good => "32",
            Self::Bad => "31",
            Self::Doubtful => "33",
            Self::Faint => "2",
            Self::Strong => "1",
        }
    }
}

/// Width without a terminal.
const DEFAULT_COLUMNS: usize = 80;

impl Printer {
    pub fn new(format: Format, verbosity: Verbosity, color: Color) -> Self {
        let terminal = io::stdout().is_terminal();
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let forced = set("CLICOLOR_FORCE");
        let color = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => !set("NO_COLOR") && (forced || terminal),
        };
        let configured = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
        let measured = comfy_table::Table::new().width().map(usize::from).filter(|_| terminal);
        let columns = configured.or(measured).unwrap_or(DEFAULT_COLUMNS).clamp(40, 500);
        NOTES_ARE_PRINTED.store(verbosity >= Verbosity::Normal && format == Format::Text, Ordering::Relaxed);
        REQUESTS_ARE_PRINTED.store(verbosity == Verbosity::Verbose, Ordering::Relaxed);
        Self { format, verbosity, terminal, color, columns, extras: Extras::default() }
    }

    #[must_use]
    pub fn with(mut self, extras: Extras) -> Self {
        self.extras = extras;
        self
    }

    /// The same, except for JSON data.
    pub fn as_json(&self) -> Self {
        let format = match &self.format {
            Format::Text => Format::Json(None),
            json @ Format::Json(_) => json.clone(),
        };
        Self { format, ..self.clone() }
    }

    /// Width of text in columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// A text in a tone, if colour is used.
    pub fn paint(&self, text: &str, tone: Tone) -> String {
        if self.color { format!("\u{1b}[{}m{text}\u{1b}[0m", tone.code()) } else { text.to_owned() }
    }

    /// A line of a unified difference.
    pub fn paint_diff(&self, line: &str) -> String {
        let text = screen::code_line(line);
        match line.as_bytes().first() {
            Some(b'+') => self.paint(&text, Tone::Good),
            Some(b'-') => self.paint(&text, Tone::Bad),
            Some(b'@') => self.paint(&text, Tone::Faint),
            _ => text,
        }
    }

    /// One object: the document, or a text. An empty text prints nothing.
    pub fn one(&self, document: Value, text: &str) -> Result<(), Failure> {
        match &self.format {
            Format::Json(fields) => self.write_json(&select(document, fields.as_deref())),
            Format::Text if text.is_empty() => Ok(()),
            Format::Text => write_out(text),
        }
    }

    /// A list: a table at a terminal, tab-separated rows without a header in a pipe, or the document
    /// `{items, next_cursor}`. Columns of ids are never cut.
    pub fn list(&self, list: List) -> Result<(), Failure> {
        if let Format::Json(fields) = &self.format {
            let mut items = list.items.into_iter().map(|item| select(item, fields.as_deref()));
            if self.extras.lines {
                return items.try_for_each(|item| self.write_json(&item));
            }
            let items = items.collect();
            let mut document = Map::new();
            document.insert("items".into(), Value::Array(items));
            document.insert("next_cursor".into(), list.next_cursor.into());
            return self.write_json(&Value::Object(document));
        }
        if list.rows.is_empty() {
            self.note(list.empty);
        } else if self.terminal {
            write_out(&self.table(&list))?;
        } else {
            let rows = list.rows.iter().map(|row| row.iter().map(|cell| screen::clean(cell)).collect());
            let lines: Vec<String> = rows.map(|row: Vec<String>| row.join("\t")).collect();
            write_out(&lines.join("\n"))?;
        }
        if let Some(cursor) = &list.next_cursor {
            self.note(&format!("more: --cursor {cursor}"));
        }
        Ok(())
    }

    fn table(&self, list: &List) -> String {
        let now = (!self.extras.utc).then(|| Clock::system().now());
        let cell = |text: &String| match (text.parse::<Timestamp>(), now) {
            (Ok(at), Some(now)) => Cell::whole(screen::ago(at, now)),
            (Ok(at), None) => Cell::whole(screen::to_the_second(at)),
            (Err(_), _) => Cell::of(screen::clean(text)),
        };
        let rows = list.rows.iter().map(|row| row.iter().map(cell).collect()).collect();
        table::draw(list.columns, rows, self.columns, self.color)
    }

    fn write_json(&self, document: &Value) -> Result<(), Failure> {
        // JSON does not escape every character that a terminal interprets.
        let write =
            |text: &str| if self.terminal { write_out(&screen::escape(text)) } else { write_out(text) };
        match &self.extras.jq {
            Some(jq) => jq.run(document, write),
            None => write(&document.to_string()),
        }
    }

    /// Replaces the last text, which had this number of lines; below it if stdout is not a terminal.
    pub fn replace(&self, lines: usize, text: &str) -> Result<(), Failure> {
        if self.terminal && lines > 0 {
            return write_out(&format!("\u{1b}[{lines}A\u{1b}[J{text}"));
        }
        write_out(text)
    }

    /// Replaces the last text on stderr, which took this number of rows of the terminal.
    pub fn redraw(rows: usize, text: &str) {
        let back = if rows > 0 { format!("\u{1b}[{rows}A\u{1b}[J") } else { String::new() };
        write_err(&format!("{back}{text}"));
    }

    /// Whether text on stderr may be updated in place: it is a terminal, and the format is text.
    pub fn draws(&self) -> bool {
        let is_smart = std::env::var("TERM").is_ok_and(|term| term != "dumb" && !term.is_empty());
        // Details in between would disturb the drawing.
        self.shows_progress()
            && self.verbosity != Verbosity::Verbose
            && is_smart
            && io::stderr().is_terminal()
    }

    /// Rows of the terminal of stderr; 0 when that is unknown.
    pub fn terminal_rows() -> usize {
        #[cfg(unix)]
        let rows = rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| size.ws_row);
        #[cfg(not(unix))]
        let rows = 0_u16;
        rows.into()
    }

    /// Whether progress is shown, in place or in lines.
    pub fn shows_progress(&self) -> bool {
        self.prints_notes() && !self.extras.no_progress
    }

    fn prints_notes(&self) -> bool {
        self.verbosity >= Verbosity::Normal && self.format == Format::Text
    }

    /// Whether prompts are possible.
    pub fn may_ask(&self) -> bool {
        !self.extras.no_input && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// A question on stderr, after which the answer is typed; printed with any verbosity.
    pub fn prompt(text: &str) {
        let space = if text.ends_with('\n') { "" } else { " " };
        // Errors are ignored: stderr is closed.
        let mut to = io::stderr();
        let _ = write!(to, "{text}{space}").and_then(|()| to.flush());
    }

    pub fn note(&self, text: &str) {
        if self.prints_notes() {
            write_err(text);
        }
    }

    /// The outcome on stderr: as text, or as a document.
    pub fn summary(&self, document: &Value, text: &str) {
        match self.format {
            Format::Json(_) if self.verbosity >= Verbosity::Normal => write_err(&document.to_string()),
            _ => self.note(text),
        }
    }

    /// Whether stdout is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// The line on stderr that reports readiness; scripts wait for it.
    pub fn ready(text: &str) {
        write_err(text);
    }

    /// Reports a failure and returns its exit code. Nothing is written to stdout.
    pub fn fail(&self, failure: &Failure) -> ExitCode {
        if failure.reader_gone {
            return Exit::Done.into();
        }
        let is_printed = match self.verbosity {
            Verbosity::Silent => false,
            Verbosity::Quiet => failure.exit != Exit::Interrupted,
            Verbosity::Normal | Verbosity::Verbose => true,
        };
        if !is_printed {
            return failure.exit.into();
        }
        match self.format {
            Format::Json(_) => write_err(&failure.to_json().to_string()),
            Format::Text => write_err(&screen_lines(&failure.to_text())),
        }
        failure.exit.into()
    }

    pub fn flush() -> Result<(), Failure> {
        io::stdout().flush().map_err(Failure::from)
    }
}

/// A list to be printed.
#[derive(Debug, Default)]
pub struct List {
    pub columns: &'static [&'static str],
    pub rows: Vec<Vec<String>>,
    /// The same as documents.
    pub items: Vec<Value>,
    pub next_cursor: Option<String>,
    /// The note for an empty list.
    pub empty: &'static str,
}

impl List {
    /// The items of a page of the API.
    pub fn of(
        mut page: Value,
        columns: &'static [&'static str],
        row: impl Fn(&Value) -> Vec<String>,
        empty: &'static str,
    ) -> Self {
        let items = page["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let next_cursor = page["next_cursor"].as_str().map(str::to_owned);
        Self { columns, rows: items.iter().map(row).collect(), items, next_cursor, empty }
    }
}

/// The chosen fields of an object, in the order they were asked for.
fn select(document: Value, fields: Option<&[String]>) -> Value {
    match (document, fields) {
        (Value::Object(mut object), Some(fields)) => {
            let chosen = fields.iter().filter_map(|name| object.remove_entry(name));
            Value::Object(chosen.collect())
        }
        (document, _) => document,
    }
}

/// Lines without control characters.
fn screen_lines(text: &str) -> String {
    text.lines().map(screen::clean).collect::<Vec<_>>().join("\n")
}

fn write_out(text: &str) -> Result<(), Failure> {
    let mut line = text.trim_end_matches('\n').to_owned();
    // Writing to a String cannot fail.
    let _ = writeln!(line);
    io::stdout().write_all(line.as_bytes()).map_err(Failure::from)
}

fn write_err(text: &str) {
    // Errors are ignored: stderr is closed.
    let _ = writeln!(io::stderr(), "{}", text.trim_end());
}
