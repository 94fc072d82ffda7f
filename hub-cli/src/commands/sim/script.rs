//! `sim script`: runs a script of messages and faults.

use std::time::Duration;

use hub_core::{demo::Behaviour, time::Clock};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    faults::{cut_for, expire},
    receiver::behave,
    say::{account, say},
};
use crate::{
    args::{SimScriptArgs, duration},
    commands::read_file,
    document::cell,
    exit::Failure,
    printer::Printer,
    screen,
    signals::stopped,
    sim_client::SimClient,
};

const MAX_STEPS: usize = 10_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    step: Vec<Written>,
}

/// A step as in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Written {
    say: Option<String>,
    r#as: Option<String>,
    wait: Option<String>,
    outage: Option<String>,
    expire: Option<bool>,
    receiver: Option<Behaviour>,
    times: Option<u32>,
}

#[derive(Debug, PartialEq)]
enum Step {
    Say { text: String, person: Option<String> },
    Wait(Duration),
    Outage(Duration),
    Expire,
    Receiver { behaviour: Behaviour, times: Option<u32> },
}

pub async fn run(args: SimScriptArgs, printer: &Printer) -> Result<(), Failure> {
    let steps = parse(&read_file(&args.file)?).map_err(|why| Failure::file(&args.file, why))?;
    let simulator = SimClient::new(&args.bot.target.sim)?;
    let account = account(&simulator, &args.bot).await?;
    for (number, step) in (1_u32..).zip(&steps) {
        let (did, detail) = play(step, &simulator, &account).await?;
        let text = format!("{number}\t{did}\t{}", screen::clean(&detail));
        printer.one(json!({ "step": number, "did": did, "detail": detail }), &text)?;
    }
    Ok(())
}

async fn play(
    step: &Step,
    simulator: &SimClient,
    account: &Value,
) -> Result<(&'static str, String), Failure> {
    match step {
        Step::Say { text, person } => {
            let said = say(simulator, account, person.as_deref(), text).await?;
            Ok(("say", format!("{}: {text}", cell(&said, "from_user_id"))))
        }
        Step::Wait(time) => {
            let clock = Clock::system();
            tokio::select! {
                () = clock.sleep(*time) => Ok(("wait", format!("{} s", time.as_secs()))),
                () = stopped() => Err(Failure::interrupted()),
            }
        }
        Step::Outage(time) => {
            cut_for(simulator, *time, account["wx_id"].as_str()).await?;
            Ok(("outage", format!("{} s", time.as_secs())))
        }
        Step::Expire => {
            expire(simulator, account).await?;
            Ok(("expire", cell(account, "wx_id")))
        }
        Step::Receiver { behaviour, times } => {
            let set = behave(simulator, *behaviour, *times).await?;
            Ok(("receiver", cell(&set, "mode")))
        }
    }
}

/// The steps of a file; an error message if it is invalid.
fn parse(text: &str) -> Result<Vec<Step>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    if file.step.len() > MAX_STEPS {
        return Err(format!("has more than {MAX_STEPS} steps"));
    }
    let read = |(number, written): (usize, Written)| {
        step(written).map_err(|why| format!("step {}: {why}", number + 1))
    };
    file.step.into_iter().enumerate().map(read).collect()
}

fn step(written: Written) -> Result<Step, String> {
    let named = [
        written.say.is_some(),
        written.wait.is_some(),
        written.outage.is_some(),
        written.expire.is_some(),
        written.receiver.is_some(),
    ];
    if named.into_iter().filter(|named| *named).count() != 1 {
        return Err("needs exactly one of say, wait, outage, expire and receiver".to_owned());
    }
    if written.r#as.is_some() && written.say.is_none() {
        return Err("as is only allowed with say".to_owned());
    }
    if written.times.is_some() && written.receiver.is_none() {
        return Err("times is only allowed with receiver".to_owned());
    }
    if let Some(text) = written.say {
        return Ok(Step::Say { text, person: written.r#as });
    }
    if let Some(time) = written.wait {
        return duration(&time).map(Step::Wait);
    }
    if let Some(time) = written.outage {
        return duration(&time).map(Step::Outage);
    }
    match (written.receiver, written.expire) {
        (Some(behaviour), _) => Ok(Step::Receiver { behaviour, times: written.times }),
        (None, Some(true)) => Ok(Step::Expire),
        _ => Err("expire can only be true".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sim_script_is_validated_as_a_whole() {
        let file = "[[step]]\nsay = \"order 42\"\nas = \"Ada\"\n[[step]]\nwait = \"2s\"\n[[step]]\noutage = \"1m\"\n\
            [[step]]\nexpire = true\n[[step]]\nreceiver = \"fail\"\ntimes = 2\n";
        let steps = [
            Step::Say { text: "order 42".to_owned(), person: Some("Ada".to_owned()) },
            Step::Wait(Duration::from_secs(2)),
            Step::Outage(Duration::from_secs(60)),
            Step::Expire,
            Step::Receiver { behaviour: Behaviour::Fail, times: Some(2) },
        ];
        assert_eq!(parse(file).unwrap(), steps);
        for (wrong, why) in [
            ("x = 1", "unknown field"),
            ("[[step]]", "step 1: needs exactly one"),
            ("[[step]]\nsay = \"a\"\nwait = \"1s\"", "needs exactly one"),
            ("[[step]]\nwait = \"soon\"", "step 1: must be a number with a unit"),
            ("[[step]]\nexpire = false", "expire can only be true"),
            ("[[step]]\nwait = \"1s\"\nas = \"Ada\"", "as is only allowed with say"),
            ("[[step]]\nsay = \"a\"\ntimes = 2", "times is only allowed with receiver"),
            ("[[step]]\nreceiver = \"explode\"", "unknown variant"),
        ] {
            let message = parse(wrong).unwrap_err();
            assert!(message.contains(why), "{wrong}: {message}");
        }
    }
}
