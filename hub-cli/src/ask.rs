//! Prompts at a terminal: asked on stderr, answered with a line. Each prompt can be replaced by flags:
//! [`Confirm`](crate::args::Confirm).

use std::io::{self, BufRead, Read};

use tokio::sync::oneshot;

use crate::{exit::Failure, printer::Printer, screen, signals};

/// Maximum length of a line, in bytes.
const MAX_LINE: u64 = 64 * 1024;

/// A line of stdin without its end; `None` at the end of stdin.
///
/// It is read in a detached thread, so that an interruption need not wait for it.
pub async fn line() -> io::Result<Option<String>> {
    let (sender, receiver) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().take(MAX_LINE).read_line(&mut line);
        let line = read.map(|count| (count > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned()));
        // The receiver is gone after an interruption.
        let _ = sender.send(line);
    });
    receiver.await.unwrap_or(Ok(None))
}

/// Asks whether to continue.
///
/// # Errors
/// Exit 2 when the answer is anything but yes.
pub async fn yes(what: &str) -> Result<(), Failure> {
    let answer = answer(what, "continue? [y/N]").await?;
    let agrees = answer.is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes"));
    if agrees { Ok(()) } else { Err(unchanged("not confirmed")) }
}

/// Asks for the name of the object.
///
/// # Errors
/// Exit 2 when another one is typed.
pub async fn name(what: &str, name: &str) -> Result<(), Failure> {
    let name = screen::clean(name);
    let answer = answer(what, &format!("type {name} to continue:")).await?;
    // A name without visible characters cannot be typed.
    if answer.is_some_and(|answer| !answer.is_empty() && answer == name.trim()) {
        Ok(())
    } else {
        Err(unchanged("the name was not typed"))
    }
}

async fn answer(what: &str, question: &str) -> Result<Option<String>, Failure> {
    // Before the question is seen: an interruption of the prompt must not end the program without a word.
    let stopped = signals::stopped();
    Printer::prompt(&format!("{}\n{question}", screen::clean(what)));
    let line = tokio::select! {
        line = line() => line.map_err(|error| Failure::file("stdin", error))?,
        () = stopped => {
            // Ends the line of the missing answer.
            Printer::prompt("\n");
            return Err(Failure::interrupted());
        }
    };
    if line.is_none() {
        Printer::prompt("\n");
    }
    Ok(line.map(|line| line.trim().to_owned()))
}

fn unchanged(why: &str) -> Failure {
    Failure::usage(format!("{why}: nothing was changed")).with_hint("use --yes to skip the prompt")
}
