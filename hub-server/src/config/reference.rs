//! The page of all settings, made from the table and from the file of defaults.

use std::fmt::Write;

use super::{DEFAULT_FILE, SETTINGS, setting::Setting};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/SETTINGS.md");

const HEAD: &str = "\
# Settings

Generated from the program: `HUB_UPDATE_REFERENCE=1 cargo test --workspace --lib -- config::reference` regenerates this page.

`data_dir` in `hub.toml` is `HUB_DATA_DIR` in the environment and `--data-dir` as a flag; a flag has priority over a variable, a variable over the
file. `hub.toml` is the file of `--config` or `HUB_CONFIG`, otherwise the one in the working directory, otherwise `/etc/hub/hub.toml`. `demo` and `migrate` have the flags
`--no-demo` and `--no-migrate`; a setting marked 🔑 has none. One marked 📄 can also be read from a file named by `…_FILE`, or by `…_file` in `hub.toml`, or from a
systemd credential of its name. `hub-server config init` writes a file with all of them.
";

/// A cell of a table: what separates cells is not one.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn row(page: &mut String, setting: &Setting, default: &str) {
    let marks = [(setting.secret, " 🔑"), (setting.in_file, " 📄")];
    let marks: String = marks.iter().filter(|(marked, _)| *marked).map(|(_, mark)| *mark).collect();
    let default =
        if matches!(default, "\"\"" | "[]") { String::new() } else { format!("`{}`", cell(default)) };
    let (name, value, help) = (setting.name, cell(setting.value), cell(setting.help));
    writeln!(page, "| `{name}`{marks} | {value} | {default} | {help} |").expect("a String takes everything");
}

/// Sections and their order are those of the file of defaults.
fn page() -> String {
    let mut page = HEAD.to_owned();
    for line in DEFAULT_FILE.lines() {
        if let Some(title) = line.strip_prefix("# --- ") {
            page.push_str("\n## ");
            page.push_str(title.trim_end_matches('-').trim_end());
            page.push_str("\n\n| setting | value | default | meaning |\n|---|---|---|---|\n");
        } else if let Some((name, default)) = line.strip_prefix("# ").and_then(|line| line.split_once(" = "))
            && let Some(setting) = SETTINGS.iter().find(|setting| setting.name == name)
        {
            row(&mut page, setting, default);
        }
    }
    page
}

#[test]
fn the_page_of_settings_is_up_to_date() {
    let page = page();
    for setting in SETTINGS {
        assert!(page.contains(&format!("| `{}`", setting.name)), "{} is in no section", setting.name);
    }
    if std::env::var_os("HUB_UPDATE_REFERENCE").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap();
    assert!(written == page, "SETTINGS.md is not up to date: run with HUB_UPDATE_REFERENCE=1");
}
