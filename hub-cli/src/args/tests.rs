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
        .collect()
}

#[test]
fn every_leaf_has_two_examples_that_parse() {
    Cli::command().debug_assert();
    let mut found = Vec::new();
    leaves(&Cli::command(), "", &mut found);
    assert_eq!(found.len(), 10);
    for (path, leaf) in found {
        let help = leaf.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples: Vec<&str> = help
            .lines()
            .filter_map(|line| line.split_once("hub-cli "))
            .map(|(before, rest)| {
                assert!(
                    before.is_empty() || before.starts_with("  ") || before.starts_with("See"),
                    "{before:?}"
                );
                rest
            })
            .filter(|rest| help.contains(&format!("hub-cli {rest}")))
            .collect();
        let examples: Vec<_> =
            examples.into_iter().filter(|rest| format!("hub-cli {rest}").starts_with(&path)).collect();
        assert!(examples.len() >= 2, "{path} has {examples:?}");
        for example in examples {
            let line = [OsString::from("hub-cli")].into_iter().chain(words(example));
            assert!(Cli::try_parse_from(line).is_ok(), "{example}");
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
