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
    Cli::tree().debug_assert();
    let mut found = Vec::new();
    leaves(&Cli::tree(), "", &mut found);
    assert!(found.len() >= 11, "{}", found.len());
    for (path, leaf) in found {
        let help = leaf.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines = help.lines().filter(|line| line.starts_with("  "));
        // An example may begin with what is piped into it.
        let examples: Vec<&str> =
            lines.filter_map(|line| line.find("hub-cli ").map(|at| &line[at..])).collect();
        assert!(examples.len() >= 2, "{path} has {examples:?}");
        assert!(help.contains("\nExit codes: 0 ") && !help.ends_with("See also: "), "{path}: {help}");
        for example in examples {
            assert!(example.starts_with(&path), "{example} is none of {path}");
            let read = Cli::try_parse_from(words(example));
            assert!(read.is_ok(), "{example}: {}", read.unwrap_err());
        }
    }
}

/// The commands of a shell's line that are ours.
fn own_commands(line: &str) -> Vec<&str> {
    let line = line.split(" #").next().unwrap_or_default();
    let commands = line.split(" && ").flat_map(|part| part.split(" | "));
    commands.map(str::trim).filter(|command| command.starts_with("hub-cli ")).collect()
}

#[test]
fn the_commands_of_the_guides_parse() {
    let workspace = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let guides = [
        "README.md",
        "README.zh-CN.md",
        "examples/apps/README.md",
        "examples/deploy/README.md",
        "examples/plugins/README.md",
        "hub-cli/README.md",
        "hub-server/README.md",
        "openapi/README.md",
    ];
    let mut seen = 0;
    for guide in guides {
        let text = std::fs::read_to_string(workspace.join(guide)).unwrap();
        for block in text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            for command in block.replace("\\\n", "").lines().flat_map(own_commands) {
                seen += 1;
                let read = Cli::try_parse_from(words(command));
                assert!(read.is_ok(), "{guide}: {command}: {}", read.unwrap_err());
            }
        }
    }
    assert!(seen > 40, "{seen}");
}

#[test]
fn json_takes_fields_only_after_an_equals_sign() {
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
fn local_is_rejected_by_commands_without_a_data_folder() {
    let rejects_local = |line: &str| Cli::read(words(line)).map_err(|_| ()).unwrap().0.rejects_local();
    assert!(!rejects_local("hub-cli --local traces list --bot demo"));
    assert!(!rejects_local("hub-cli db migrate --local"));
    assert!(!rejects_local("hub-cli demo"));
    assert!(rejects_local("hub-cli --local demo"));
    assert!(rejects_local("hub-cli --local sim reset"));
}
