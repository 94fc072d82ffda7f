use super::*;

fn leaves(command: &clap::Command, path: &str, found: &mut Vec<(String, clap::Command)>) {
    let path = format!("{path} {}", command.get_name()).trim().to_owned();
    if command.has_subcommands() {
        command.get_subcommands().for_each(|sub| leaves(sub, &path, found));
    } else {
        found.push((path, command.clone()));
    }
}

/// Splits as a shell does, as far as the examples need it.
fn words(line: &str) -> Vec<OsString> {
    let parts = line.split('"').enumerate();
    parts
        .flat_map(|(index, part)| match index % 2 {
            0 => part.split_whitespace().map(OsString::from).collect(),
            _ => vec![OsString::from(part)],
        })
        // Where the output goes is the shell's business.
        .take_while(|word| word != ">")
        .collect()
}

#[test]
fn every_leaf_has_two_examples_that_parse() {
    Cli::command().debug_assert();
    let mut found = Vec::new();
    leaves(&Cli::command(), "", &mut found);
    assert!(found.len() >= 11, "{}", found.len());
    for (path, leaf) in found {
        let help = leaf.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines = help.lines().filter(|line| line.starts_with("  "));
        // An example may begin with what is piped into it.
        let examples: Vec<&str> =
            lines.filter_map(|line| line.find("hub-cli ").map(|at| &line[at..])).collect();
        assert!(examples.len() >= 2, "{path} has {examples:?}");
        for example in examples {
            assert!(example.starts_with(&path), "{example} is none of {path}");
            let read = Cli::try_parse_from(words(example));
            assert!(read.is_ok(), "{example}: {}", read.unwrap_err());
        }
    }
}

#[test]
fn json_takes_fields_only_behind_an_equals_sign() {
    let read = |line: &str| {
        let (_, printer) = Cli::read(words(line)).map_err(|_| ()).unwrap();
        printer.format
    };
    assert_eq!(read("hub-cli demo"), Format::Text);
    assert_eq!(read("hub-cli demo --json"), Format::Json(None));
    assert_eq!(read("hub-cli --json demo"), Format::Json(None));
    let fields = Format::Json(Some(vec!["reply".to_owned(), "trace".to_owned()]));
    assert_eq!(read("hub-cli demo --json=reply,trace"), fields);
    assert!(Cli::read(words("hub-cli demo --json reply")).is_err());
}

#[test]
fn local_is_for_commands_that_work_on_a_store() {
    let in_vain = |line: &str| Cli::read(words(line)).map_err(|_| ()).unwrap().0.is_local_in_vain();
    assert!(!in_vain("hub-cli --local traces list --bot demo"));
    assert!(!in_vain("hub-cli db migrate --local"));
    assert!(!in_vain("hub-cli demo"));
    assert!(in_vain("hub-cli --local demo"));
    assert!(in_vain("hub-cli --local sim reset"));
}
