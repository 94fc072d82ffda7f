//! Sources of recordings: ids, a query, files, stdin. They are read one by one on demand.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use futures_util::{Stream, StreamExt, stream};
use hub_core::{
    id::{BotId, ChannelId, TraceId},
    replay::Recording,
    traces::TraceStatus,
};
use tokio::sync::mpsc;

use crate::{
    args::TraceFilterArgs,
    client::Client,
    commands::recordings::{Recordings, Times},
    exit::Failure,
};

/// Maximum length of a line of an export, in bytes: a trace of many attempts with complete bodies.
const MAX_LINE: u64 = 16 << 20;
/// Lines that are read ahead.
const READ_AHEAD: usize = 16;
/// Traces of one request: their ids fit into a URL, of which a request has 2048 bytes.
const BATCH: usize = 40;

/// A source of recordings; a clone starts over.
#[derive(Clone)]
pub enum Source<'r> {
    /// Traces of a hub by their ids.
    Ids {
        client: &'r Client,
        bot: Option<BotId>,
        ids: Vec<TraceId>,
        after: Option<TraceId>,
    },
    /// The same, from stdin.
    StdinIds {
        client: &'r Client,
        bot: Option<BotId>,
        after: Option<TraceId>,
    },
    Query(Box<Recordings<'r>>),
    /// Exports; stdin without a file.
    Files {
        paths: Vec<PathBuf>,
        filter: LineFilter,
        after: Option<TraceId>,
    },
}

pub type Recorded<'r> = std::pin::Pin<Box<dyn Stream<Item = Result<Recording, Failure>> + 'r>>;

impl<'r> Source<'r> {
    /// Returns the number of recordings if it can be known in advance. Reads all of them once, so that invalid ones
    /// are found before anything is sent.
    pub async fn count(&self) -> Result<Option<u64>, Failure> {
        match self {
            Self::Query(recordings) => recordings.count().await.map(Some),
            Self::StdinIds { .. } => Ok(None),
            Self::Files { paths, .. } if paths.is_empty() => Ok(None),
            Self::Ids { ids, after, .. } => {
                let mut skip = Skip::new(*after);
                let count = ids.iter().filter(|id| skip.passes(**id)).count();
                skip.found()?;
                let mut all = self.clone().stream();
                while let Some(recording) = all.next().await {
                    recording?;
                }
                Ok(u64::try_from(count).ok())
            }
            Self::Files { .. } => {
                let (mut all, mut count) = (self.clone().stream(), 0);
                while let Some(recording) = all.next().await {
                    recording?;
                    count += 1;
                }
                Ok(Some(count))
            }
        }
    }

    pub fn stream(self) -> Recorded<'r> {
        match self {
            Self::Ids { client, bot, ids, after } => {
                let mut skip = Skip::new(after);
                let ids: Vec<_> = ids.into_iter().filter(|id| skip.passes(*id)).collect();
                let batches: Vec<_> = ids.chunks(BATCH).map(<[_]>::to_vec).collect();
                Box::pin(
                    stream::iter(batches).then(move |ids| of_ids(client, bot, ids)).flat_map(stream::iter),
                )
            }
            Self::StdinIds { client, bot, after } => {
                let lines = lines(Vec::new(), BATCH);
                Box::pin(
                    stream::unfold((lines, Skip::new(after)), move |(mut lines, mut skip)| async move {
                        let (ids, end) = next_ids(&mut lines, &mut skip).await;
                        if ids.is_empty() && end.is_none() {
                            return None;
                        }
                        let recordings = of_ids(client, bot, ids).await.into_iter().chain(end.map(Err));
                        Some((stream::iter(recordings.collect::<Vec<_>>()), (lines, skip)))
                    })
                    .flatten(),
                )
            }
            Self::Query(recordings) => Box::pin(stream::unfold(recordings, |mut recordings| async move {
                let next = recordings.next().await.transpose()?;
                Some((next, recordings))
            })),
            Self::Files { paths, filter, after } => {
                let lines = lines(paths, READ_AHEAD);
                Box::pin(stream::unfold((lines, Skip::new(after)), move |(mut lines, mut skip)| async move {
                    let next = next_recording(&mut lines, &filter, &mut skip).await.transpose()?;
                    Some((next, (lines, skip)))
                }))
            }
        }
    }
}

async fn of_ids(client: &Client, bot: Option<BotId>, ids: Vec<TraceId>) -> Vec<Result<Recording, Failure>> {
    match client.recordings_of(bot, &ids).await {
        Ok(found) => {
            let one = |id| found.get(id).cloned().ok_or_else(|| Client::no_trace(*id));
            ids.iter().map(one).collect()
        }
        Err(failure) => vec![Err(failure)],
    }
}

/// A line, and its name in messages.
type Line = Result<(String, String), Failure>;

/// Returns the ids of the available lines, at least one, and the failure after them; neither at the end.
async fn next_ids(lines: &mut mpsc::Receiver<Line>, skip: &mut Skip) -> (Vec<TraceId>, Option<Failure>) {
    let mut ids = Vec::new();
    while ids.len() < BATCH {
        let line = match lines.try_recv() {
            Ok(line) => line,
            Err(_) if !ids.is_empty() => break,
            Err(_) => match lines.recv().await {
                Some(line) => line,
                None => return (ids, skip.found().err()),
            },
        };
        match line.and_then(|(place, line)| id_of(&place, &line)) {
            Ok(Some(id)) if skip.passes(id) => ids.push(id),
            Ok(_) => {}
            Err(failure) => return (ids, Some(failure)),
        }
    }
    (ids, None)
}

/// The id at the beginning of a line; `None` when the line is empty.
fn id_of(place: &str, line: &str) -> Result<Option<TraceId>, Failure> {
    let word = line.split_whitespace().next();
    word.map(str::parse)
        .transpose()
        .map_err(|_| Failure::file(place, format!("{} is not the id of a trace", word.unwrap_or_default())))
}

async fn next_recording(
    lines: &mut mpsc::Receiver<Line>,
    filter: &LineFilter,
    skip: &mut Skip,
) -> Result<Option<Recording>, Failure> {
    while let Some(line) = lines.recv().await {
        let (place, line) = line?;
        if line.trim().is_empty() {
            continue;
        }
        let recording: Recording = serde_json::from_str(line.trim_end()).map_err(|error| {
            Failure::file(&place, format!("is not a recording of `traces export`: {}", reason(&error)))
        })?;
        if skip.passes(recording.trace.trace_id) && filter.fits(&recording) {
            return Ok(Some(recording));
        }
    }
    skip.found().map(|()| None)
}

/// Returns the reason without the line number: for the parser, every line is the first one.
fn reason(error: &serde_json::Error) -> String {
    let (text, column) = (error.to_string(), error.column());
    match text.strip_suffix(&format!(" at line {} column {column}", error.line())) {
        Some(reason) => format!("{reason} at column {column}"),
        None => text,
    }
}

/// A selection of the recordings of a file.
#[derive(Debug, Clone, Copy)]
pub struct LineFilter {
    channel: Option<ChannelId>,
    times: Times,
    status: Option<TraceStatus>,
}

impl LineFilter {
    /// Creates the filter of these arguments.
    ///
    /// # Errors
    /// A failure if a time is invalid, or the channel is not given by its id.
    pub fn of(args: &TraceFilterArgs) -> Result<Self, Failure> {
        let channel = args.channel.as_ref().map(|channel| {
            channel.parse().map_err(|_| {
                Failure::usage("--channel: recordings have the id of their channel, not its name")
            })
        });
        Ok(Self {
            channel: channel.transpose()?,
            times: Times::of(args.since.as_ref(), args.until.as_ref())?,
            status: args.status,
        })
    }

    fn fits(&self, recording: &Recording) -> bool {
        let trace = &recording.trace;
        self.channel.is_none_or(|channel| trace.channel_id == Some(channel))
            && self.status.is_none_or(|status| trace.status == status)
            && self.times.since.is_none_or(|since| trace.started_at >= since)
            && self.times.until.is_none_or(|until| trace.started_at < until)
    }
}

/// Skips everything up to and including a trace.
#[derive(Debug)]
struct Skip {
    after: Option<TraceId>,
}

impl Skip {
    fn new(after: Option<TraceId>) -> Self {
        Self { after }
    }

    fn passes(&mut self, id: TraceId) -> bool {
        match self.after {
            None => true,
            Some(after) => {
                if after == id {
                    self.after = None;
                }
                false
            }
        }
    }

    /// Fails if the trace was not found, in which case nothing was sent.
    fn found(&self) -> Result<(), Failure> {
        match self.after {
            None => Ok(()),
            Some(after) => {
                Err(Failure::not_found(format!("--resume-from {after}: this trace is not among them")))
            }
        }
    }
}

/// The lines of files, or of stdin. A thread reads them, because reading stdin blocks; it is detached.
fn lines(paths: Vec<PathBuf>, ahead: usize) -> mpsc::Receiver<Line> {
    let (sender, receiver) = mpsc::channel(ahead);
    std::thread::spawn(move || {
        if paths.is_empty() {
            send_lines(&mut std::io::stdin().lock(), "stdin", &sender);
        }
        for path in paths {
            let shown = path.display().to_string();
            let goes_on = match File::open(&path) {
                Ok(file) => send_lines(&mut BufReader::new(file), &shown, &sender),
                Err(error) => sender.blocking_send(Err(Failure::file(&shown, error))).is_ok(),
            };
            if !goes_on {
                return;
            }
        }
    });
    receiver
}

/// Whether the receiver still exists.
fn send_lines(source: &mut impl BufRead, name: &str, sender: &mpsc::Sender<Line>) -> bool {
    for number in 1.. {
        let mut line = Vec::new();
        let place = format!("{name}:{number}");
        let read = source.take(MAX_LINE + 1).read_until(b'\n', &mut line);
        let line = match read {
            Ok(0) => return true,
            Ok(length) if length as u64 > MAX_LINE => Err(Failure::file(&place, "is over 16 MiB")),
            Ok(_) => String::from_utf8(line).map_err(|_| Failure::file(&place, "is not UTF-8")),
            Err(error) => Err(Failure::file(&place, error)),
        };
        let is_bad = line.is_err();
        if sender.blocking_send(line.map(|line| (place, line))).is_err() || is_bad {
            return false;
        }
    }
    true
}

/// Returns the files of a name: itself, or the `*.jsonl` of a folder in the order of their names.
///
/// # Errors
/// A failure if the file does not exist, or the folder contains none.
pub fn files(name: &str) -> Result<Vec<PathBuf>, Failure> {
    let path = Path::new(name);
    let about = std::fs::metadata(path).map_err(|error| Failure::file(name, error))?;
    if !about.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).map_err(|error| Failure::file(name, error))?;
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let mut found: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    found.sort();
    if found.is_empty() {
        return Err(Failure::not_found(format!("there is no *.jsonl in {name}"))
            .with_hint("hub-cli traces export --bot BOT --out FILE"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resume_from_skips_done_traces_and_must_exist() {
        let [a, b, c] = [1, 2, 3].map(TraceId::from_u128);
        let mut skip = Skip::new(Some(b));
        assert_eq!([a, b, c, b].map(|id| skip.passes(id)), [false, false, true, true]);
        assert!(skip.found().is_ok());
        let mut skip = Skip::new(Some(b));
        assert!(!skip.passes(a) && skip.found().is_err());
        assert!(Skip::new(None).passes(a));
    }

    #[test]
    fn recording_lines_are_read_one_by_one_with_their_numbers() {
        let (sender, mut receiver) = mpsc::channel(8);
        assert!(send_lines(&mut &b"one\ntwo"[..], "f", &sender));
        assert!(!send_lines(&mut &b"ok\n\xff\nnever"[..], "g", &sender));
        drop(sender);
        let mut seen = Vec::new();
        while let Some(line) = receiver.blocking_recv() {
            seen.push(line.map_err(|failure| failure.message));
        }
        let line = |place: &str, text: &str| Ok((place.to_owned(), text.to_owned()));
        let expected = [
            line("f:1", "one\n"),
            line("f:2", "two"),
            line("g:1", "ok\n"),
            Err("g:2: is not UTF-8".to_owned()),
        ];
        assert_eq!(seen, expected);
    }
}
