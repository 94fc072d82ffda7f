//! Questions to whoever sits at the terminal: asked on stderr, answered with a line. A prompt is never the only way
//! (`ux` 2.1): the flags of [`Confirm`](crate::args::Confirm) say the same.

use std::io::{self, BufRead, Read};

use tokio::sync::oneshot;

use crate::{exit::Failure, printer::Printer, screen, signals};

/// Most that is read of a line, in bytes.
const MOST: u64 = 64 * 1024;

/// A line of stdin without its end; `None` at the end of stdin.
///
/// It is read in a thread of its own, which nobody waits for: whoever is interrupted ends without a line.
///
/// # Errors
/// What reading says.
pub async fn line() -> io::Result<Option<String>> {
    let (tell, told) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().take(MOST).read_line(&mut line);
        let line = read.map(|count| (count > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned()));
        // Nobody hears it after an interruption.
        let _ = tell.send(line);
    });
    told.await.unwrap_or(Ok(None))
}

/// Asks whether to go on.
///
/// # Errors
/// Exit 2 when the answer is anything but yes.
pub async fn yes(what: &str) -> Result<(), Failure> {
    let answer = answer(what, "go on? [y/N]").await?;
    let agrees = answer.is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes"));
    if agrees { Ok(()) } else { Err(unchanged("nobody said yes")) }
}

/// Asks for the name of what goes.
///
/// # Errors
/// Exit 2 when another one is typed.
pub async fn name(what: &str, name: &str) -> Result<(), Failure> {
    let name = screen::clean(name);
    let answer = answer(what, &format!("type {name} to go on:")).await?;
    // Of a name with nothing to be seen, nothing can be typed.
    if answer.is_some_and(|answer| !answer.is_empty() && answer == name.trim()) {
        Ok(())
    } else {
        Err(unchanged("the name was not typed"))
    }
}

async fn answer(what: &str, question: &str) -> Result<Option<String>, Failure> {
    Printer::prompt(&format!("{}\n{question}", screen::clean(what)));
    let line = tokio::select! {
        line = line() => line.map_err(|error| Failure::file("stdin", error))?,
        () = signals::stopped() => {
            // The answer that did not come ends its line.
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
    Failure::usage(format!("{why}: nothing was changed")).with_hint("--yes does it without a question")
}
