//! Where the recordings of a replay come from: ids, a query, files, stdin. One is read when one is needed.

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
    commands::recordings::{Recordings, Times, of_trace},
    exit::Failure,
    reach::Reach,
};

/// Longest line of an export, in bytes: a trace of many attempts with whole bodies.
const MAX_LINE: u64 = 16 << 20;
/// Lines that are read ahead.
const AHEAD: usize = 16;

/// Where recordings come from.
pub enum Source<'r> {
    /// Traces of a hub by their ids.
    Ids { reach: &'r Reach, bot: Option<BotId>, ids: Vec<TraceId>, behind: Option<TraceId> },
    /// The same, from stdin.
    StdinIds { reach: &'r Reach, bot: Option<BotId>, behind: Option<TraceId> },
    /// Those of a query.
    Query(Box<Recordings<'r>>),
    /// Exports; no file is stdin.
    Files { paths: Vec<PathBuf>, filter: LineFilter, behind: Option<TraceId> },
}

/// A stream of recordings.
pub type Recorded<'r> = std::pin::Pin<Box<dyn Stream<Item = Result<Recording, Failure>> + 'r>>;

impl<'r> Source<'r> {
    /// How many there are, where that can be known beforehand. Reads all of them once: what is not acceptable among
    /// them is found before anything is sent.
    ///
    /// # Errors
    /// What is not acceptable, or what the hub says.
    pub async fn count(&self) -> Result<Option<u64>, Failure> {
        match self {
            Self::Query(recordings) => recordings.count().await.map(Some),
            Self::StdinIds { .. } => Ok(None),
            Self::Files { paths, .. } if paths.is_empty() => Ok(None),
            Self::Ids { ids, behind, .. } => {
                let mut skip = Skip::new(*behind);
                let count = ids.iter().filter(|id| skip.passes(**id)).count();
                skip.found()?;
                let mut all = self.again().stream();
                while let Some(recording) = all.next().await {
                    recording?;
                }
                Ok(u64::try_from(count).ok())
            }
            Self::Files { .. } => {
                let (mut all, mut count) = (self.again().stream(), 0);
                while let Some(recording) = all.next().await {
                    recording?;
                    count += 1;
                }
                Ok(Some(count))
            }
        }
    }

    /// The same from the start.
    fn again(&self) -> Source<'r> {
        match self {
            Self::Ids { reach, bot, ids, behind } => {
                Source::Ids { reach, bot: *bot, ids: ids.clone(), behind: *behind }
            }
            Self::StdinIds { reach, bot, behind } => Source::StdinIds { reach, bot: *bot, behind: *behind },
            Self::Query(recordings) => Source::Query(Box::new(recordings.again())),
            Self::Files { paths, filter, behind } => {
                Source::Files { paths: paths.clone(), filter: *filter, behind: *behind }
            }
        }
    }

    /// The recordings.
    pub fn stream(self) -> Recorded<'r> {
        match self {
            Self::Ids { reach, bot, ids, behind } => {
                let mut skip = Skip::new(behind);
                let ids: Vec<_> = ids.into_iter().filter(|id| skip.passes(*id)).collect();
                let one = move |id| async move { of_id(reach, bot, id).await };
                Box::pin(stream::iter(ids).then(one))
            }
            Self::StdinIds { reach, bot, behind } => {
                let lines = lines(Vec::new());
                Box::pin(stream::unfold(
                    (lines, Skip::new(behind)),
                    move |(mut lines, mut skip)| async move {
                        let next = next_id(&mut lines, &mut skip).await.transpose()?;
                        let next = match next {
                            Ok(id) => of_id(reach, bot, id).await,
                            Err(failure) => Err(failure),
                        };
                        Some((next, (lines, skip)))
                    },
                ))
            }
            Self::Query(recordings) => Box::pin(stream::unfold(recordings, |mut recordings| async move {
                let next = recordings.next().await.transpose()?;
                Some((next, recordings))
            })),
            Self::Files { paths, filter, behind } => {
                let lines = lines(paths);
                Box::pin(stream::unfold(
                    (lines, Skip::new(behind)),
                    move |(mut lines, mut skip)| async move {
                        let next = next_recording(&mut lines, &filter, &mut skip).await.transpose()?;
                        Some((next, (lines, skip)))
                    },
                ))
            }
        }
    }
}

async fn of_id(reach: &Reach, bot: Option<BotId>, id: TraceId) -> Result<Recording, Failure> {
    of_trace(reach, reach.trace(bot, id).await?).await
}

/// A line, and what it is called in messages.
type Line = Result<(String, String), Failure>;

async fn next_id(lines: &mut mpsc::Receiver<Line>, skip: &mut Skip) -> Result<Option<TraceId>, Failure> {
    while let Some(line) = lines.recv().await {
        let (place, line) = line?;
        let Some(word) = line.split_whitespace().next() else { continue };
        let id =
            word.parse().map_err(|_| Failure::file(&place, format!("{word} is not the id of a trace")))?;
        if skip.passes(id) {
            return Ok(Some(id));
        }
    }
    skip.found().map(|()| None)
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
        let recording: Recording = serde_json::from_str(&line)
            .map_err(|error| Failure::file(&place, format!("is no recording of `traces export`: {error}")))?;
        if skip.passes(recording.trace.trace_id) && filter.fits(&recording) {
            return Ok(Some(recording));
        }
    }
    skip.found().map(|()| None)
}

/// Which recordings of a file are wanted.
#[derive(Debug, Clone, Copy)]
pub struct LineFilter {
    channel: Option<ChannelId>,
    times: Times,
    status: Option<TraceStatus>,
}

impl LineFilter {
    /// That of the arguments.
    ///
    /// # Errors
    /// When a time is none, or the channel is not given by its id.
    pub fn of(args: &TraceFilterArgs) -> Result<Self, Failure> {
        let channel = args.channel.as_ref().map(|channel| {
            channel.parse().map_err(|_| {
                Failure::usage("--channel: recordings have the id of their channel, not its name")
            })
        });
        Ok(Self {
            channel: channel.transpose()?,
            times: Times::of(args.since.as_ref(), args.until.as_ref())?,
            status: args.status.map(Into::into),
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

/// Leaves out everything up to and with a trace.
#[derive(Debug)]
struct Skip {
    behind: Option<TraceId>,
}

impl Skip {
    fn new(behind: Option<TraceId>) -> Self {
        Self { behind }
    }

    fn passes(&mut self, id: TraceId) -> bool {
        match self.behind {
            None => true,
            Some(behind) => {
                if behind == id {
                    self.behind = None;
                }
                false
            }
        }
    }

    /// Nothing was sent if it never came.
    fn found(&self) -> Result<(), Failure> {
        match self.behind {
            None => Ok(()),
            Some(behind) => {
                Err(Failure::not_found(format!("--resume-from {behind}: no such trace is among these")))
            }
        }
    }
}

/// The lines of files, or of stdin. A thread reads them, because stdin can only be waited for; it is left behind when
/// nobody wants more.
fn lines(paths: Vec<PathBuf>) -> mpsc::Receiver<Line> {
    let (sender, receiver) = mpsc::channel(AHEAD);
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

/// Whether somebody still listens.
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

/// The files that a name means: itself, or the `*.jsonl` of a folder in the order of their names.
///
/// # Errors
/// When there is no such file, or none in the folder.
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
    fn what_is_done_is_left_out_and_has_to_be_there() {
        let [a, b, c] = [1, 2, 3].map(TraceId::from_u128);
        let mut skip = Skip::new(Some(b));
        assert_eq!([a, b, c, b].map(|id| skip.passes(id)), [false, false, true, true]);
        assert!(skip.found().is_ok());
        let mut skip = Skip::new(Some(b));
        assert!(!skip.passes(a) && skip.found().is_err());
        assert!(Skip::new(None).passes(a));
    }

    #[test]
    fn lines_are_read_one_by_one_and_named() {
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
