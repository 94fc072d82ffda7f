//! Every command of the programs that a document shows is one that they take, with these arguments.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use hub_server::config::SETTINGS;

use super::{links::documents, workspace};
use crate::support::binaries;

/// What documents write in place of a value that has a form.
const STAND_INS: [(&str, &str); 4] =
    [("SHELL", "bash"), ("EXPR", ".items"), ("URL", "http://localhost:3000/"), ("TIME", "3m")];

/// The texts between backticks of a line, and the whole line where it is of a block.
fn pieces(line: &str, in_block: bool) -> Vec<String> {
    if in_block {
        return vec![line.to_owned()];
    }
    line.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The commands in a piece of shell: of pipes, lists and substitutions, without comments and redirections.
fn commands(piece: &str) -> Vec<Vec<String>> {
    let piece = piece.split(" # ").next().unwrap_or_default().split("  #").next().unwrap_or_default();
    let (mut found, mut words, mut word, mut quote, mut skips) =
        (Vec::new(), Vec::new(), String::new(), None, false);
    let end = |words: &mut Vec<String>, word: &mut String, skips: &mut bool| {
        if !word.is_empty() && !std::mem::take(skips) {
            words.push(std::mem::take(word));
        }
        word.clear();
    };
    let mut chars = piece.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, quote) {
            // A substitution is a command, and a value in the command around it.
            ('$', None | Some('"')) if chars.peek() == Some(&'(') => {
                chars.next();
                let inner: String = chars.by_ref().take_while(|c| *c != ')').collect();
                found.extend(commands(&inner));
                word.push('x');
            }
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => {
                quote = None;
                if word.is_empty() {
                    word.push('x');
                }
            }
            (c, None) if c.is_whitespace() => end(&mut words, &mut word, &mut skips),
            ('|' | ';' | '&', None) => {
                end(&mut words, &mut word, &mut skips);
                found.push(std::mem::take(&mut words));
            }
            ('<' | '>', None) => {
                end(&mut words, &mut word, &mut skips);
                skips = true;
            }
            (c, _) => word.push(c),
        }
    }
    end(&mut words, &mut word, &mut skips);
    found.push(words);
    found
}

/// Why the program of a command does not take it; nothing for other programs, and for what leaves something out.
fn fault(folder: &Path, words: &[String]) -> Option<String> {
    let assigns = |word: &&String| {
        word.split_once('=')
            .is_some_and(|(name, _)| name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_'))
    };
    let before = words.iter().take_while(assigns).count();
    let before = before + usize::from(words.get(before).is_some_and(|word| word == "sudo"));
    let (program, arguments) = words[before..].split_first()?;
    let program = program.strip_prefix("target/release/").unwrap_or(program);
    let asks = match program {
        // It names its fields, and runs nothing.
        "hub-cli" => "--json=?",
        "hub-server" => "--help",
        _ => return None,
    };
    let is_pattern = |word: &String| word.contains(['…', '|', '*', '{']) || word.starts_with('[');
    if arguments.is_empty() || arguments.iter().any(is_pattern) {
        return None;
    }
    let arguments = arguments.iter().map(|word| {
        STAND_INS.iter().find(|(name, _)| name == word).map_or(word.as_str(), |(_, value)| *value)
    });
    let mut command = Command::new(binaries::program(program));
    command.env_clear().current_dir(folder).stdin(Stdio::null()).args(arguments).arg(asks);
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then(|| format!("{}: {told}", words.join(" ")))
}

#[test]
fn every_command_of_a_document_is_taken_by_its_program() {
    let folder = tempfile::tempdir().unwrap();
    let (mut taken, mut wrong) = (0, Vec::new());
    // What was true once is not held to the programs of today; the reference is made of them.
    let is_of_today =
        |path: &Path| !["CHANGELOG.md", "hub-cli/REFERENCE.md"].iter().any(|other| path == Path::new(other));
    for document in documents().into_iter().filter(|path| is_of_today(path)) {
        let text = std::fs::read_to_string(workspace().join(&document)).unwrap().replace("\\\n", " ");
        let (mut in_block, mut is_shell) = (false, false);
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                in_block = !in_block;
                is_shell = line.trim() == "```sh";
                continue;
            }
            if in_block && !is_shell {
                continue;
            }
            for words in pieces(line, in_block).iter().flat_map(|piece| commands(piece)) {
                taken += usize::from(words.iter().any(|word| word == "hub-cli" || word == "hub-server"));
                wrong.extend(
                    fault(folder.path(), &words).map(|fault| format!("{}: {fault}", document.display())),
                );
            }
        }
    }
    assert!(taken > 100, "only {taken} commands were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn commands_are_found_in_pipes_lists_and_substitutions() {
    let found = |piece: &str| commands(piece).into_iter().map(|words| words.join(" ")).collect::<Vec<_>>();
    assert_eq!(
        found("printf %s 'a b' | hub-cli x --file - > out # why"),
        ["printf %s a b", "hub-cli x --file -"]
    );
    assert_eq!(
        found("hub-cli show \"$(hub-cli list | cut -f1)\""),
        ["hub-cli list", "cut -f1", "hub-cli show x"]
    );
}

/// Variables that neither program reads: of the tests, and of the example apps.
const OTHERS: [&str; 4] = ["HUB_UPDATE_GOLDEN", "HUB_UPDATE_OPENAPI", "HUB_UPDATE_REFERENCE", "HUB_URL"];

#[test]
fn every_variable_of_a_document_is_read_by_a_program() {
    let of_commands = std::fs::read_to_string(workspace().join("hub-cli/src/args/topics/env.txt")).unwrap();
    let of_commands: Vec<&str> =
        of_commands.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let is_setting = |name: &str| {
        SETTINGS.iter().any(|setting| {
            let variable = setting.variable();
            name == variable || (setting.in_file && name.strip_suffix("_FILE") == Some(&variable))
        })
    };
    let (mut seen, mut unknown) = (0, Vec::new());
    for document in documents().into_iter().filter(|path| path != Path::new("CHANGELOG.md")) {
        let text = std::fs::read_to_string(workspace().join(&document)).unwrap();
        let words = text.split(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_');
        for name in words.filter(|word| word.starts_with("HUB_") && word.len() > "HUB_".len()) {
            seen += 1;
            if !is_setting(name) && !of_commands.contains(&name) && !OTHERS.contains(&name) {
                unknown.push(format!("{}: {name}", document.display()));
            }
        }
    }
    assert!(seen > 50, "only {seen} variables were found");
    assert!(unknown.is_empty(), "{unknown:#?}");
}
