//! The words of refusals: the cause once, what refuses, and a way out that works.

use std::{
    os::unix::{fs::MetadataExt, fs::PermissionsExt, process::CommandExt},
    path::Path,
};

use crate::{
    hubs::{hub, temp},
    program::{command, ends, fails, fill_hub, run, stderr, stdout},
};

/// The id of a user without rights.
const UNPRIVILEGED: u32 = 65_534;

#[track_caller]
fn says(told: &str, once: &[&str], never: &[&str]) {
    for words in once {
        assert_eq!(told.matches(words).count(), 1, "{words}: {told}");
    }
    for words in never {
        assert!(!told.contains(words), "{words}: {told}");
    }
}

#[test]
fn a_server_without_a_scheme_is_refused_with_the_url_that_is_meant() {
    let folder = temp();
    for arguments in [
        &["login", "--server", "localhost:19700"][..],
        &["bots", "list", "--server", "localhost:19700"],
        &["doctor", "--server", "localhost:19700"],
        &["listen", "--forward-to", "localhost:19700"],
        &["sim", "accounts", "--sim", "localhost:19700"],
    ] {
        let (_, told) = ends(&run(folder.path(), arguments), 2);
        says(
            &told,
            &["the scheme is missing; use http://localhost:19700"],
            &["only sent to https", "login --server"],
        );
    }
    // No hint leads to a login that is refused as well.
    let told =
        fails(&run(folder.path(), &["bots", "list", "--server", "http://hub.example"]), 2, "INVALID_PARAMS");
    says(&told, &["a key is only sent to https, or to this machine"], &["hint:"]);
    let told =
        fails(&run(folder.path(), &["bots", "list", "--server", "https://hub.example"]), 4, "UNAUTHORIZED");
    says(&told, &["hint: hub-cli login --server https://hub.example/"], &[]);
}

/// Runs a command as a user who may not read the folder. The key is a setting.
#[track_caller]
fn refused(folder: &Path, arguments: &[&str]) -> String {
    let mut command = command(folder);
    command.env("HUB_SECRET_KEY", "07".repeat(32));
    if folder.metadata().unwrap().uid() == 0 {
        command.uid(UNPRIVILEGED);
    }
    fails(&command.args(arguments).output().unwrap(), 4, "FORBIDDEN")
}

#[test]
fn the_files_of_another_user_are_named_with_their_owner() {
    let folder = hub();
    let owner = folder.path().metadata().unwrap().uid();
    let permit = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let file = folder.path().join("hub.db");
    let all: [&[&str]; 4] = [&["users", "list"], &["db", "backup"], &["db", "check"], &["bots", "list"]];
    permit(folder.path(), 0);
    for arguments in all {
        let told = refused(folder.path(), arguments);
        let place = format!("{}: permission denied", folder.path().display());
        let owner = format!("it belongs to the user with the id {owner}");
        says(&told, &[&place, &owner, "hint: run this as the user that owns it"], &["restore.journal"]);
    }
    permit(folder.path(), 0o755);
    permit(&file, 0);
    let told = refused(folder.path(), &["users", "list"]);
    says(&told, &[&format!("{}: permission denied", file.display())], &["unable to open"]);
    permit(folder.path(), 0o700);
}

#[test]
fn a_damaged_database_is_named_with_its_file_and_the_way_back() {
    let folder = hub();
    let file = folder.path().join("hub.db");
    std::fs::write(&file, "no database ".repeat(4096)).unwrap();
    for arguments in [&["users", "list"][..], &["db", "check"], &["db", "backup"]] {
        let told = fails(&run(folder.path(), arguments), 7, "UNAVAILABLE");
        let place = format!("{} is damaged or not a database: file is not a database", file.display());
        says(&told, &[&place, "restore a backup: hub-cli db restore"], &["(code: 26)", "internal error"]);
    }
}

#[test]
fn damage_that_is_found_later_is_explained_once_and_listed_by_the_check() {
    let folder = temp();
    fill_hub(folder.path(), "sk-test");
    let file = folder.path().join("hub.db");
    let mut bytes = std::fs::read(&file).unwrap();
    // The rows with passwords, which no one reads at the start.
    for page in bytes.chunks_mut(4096).filter(|page| page.windows(10).any(|bytes| bytes == b"$argon2id$")) {
        page.fill(0xA5);
    }
    std::fs::write(&file, bytes).unwrap();
    let told = fails(&run(folder.path(), &["users", "list"]), 1, "INTERNAL_ERROR");
    let once =
        ["the database is damaged, or its disk fails", "malformed", "restore a backup: hub-cli db restore"];
    says(&told, &once, &[]);
    let found = run(folder.path(), &["db", "check"]);
    assert_eq!(found.status.code(), Some(9), "{}", stderr(&found));
    assert!(stdout(&found).lines().all(|line| line.starts_with("integrity\t")), "{}", stdout(&found));
}

#[test]
fn a_file_that_is_no_backup_is_called_that() {
    let folder = temp();
    let file = folder.path().join("no.tar");
    let database = hub();
    for content in [
        r#"{"bot_id":"bot_1","attempts":1}"#.repeat(40).into_bytes(),
        b"short".to_vec(),
        (0..4096).map(|number: u32| number.to_le_bytes()[0] | 0x80).collect(),
        std::fs::read(database.path().join("hub.db")).unwrap(),
    ] {
        std::fs::write(&file, content).unwrap();
        let told =
            fails(&run(folder.path(), &["db", "restore", file.to_str().unwrap()]), 2, "INVALID_PARAMS");
        let words = "backup was not created by a hub";
        says(&told, &[words], &["numeric field", "cksum", "bot_id", "block"]);
    }
    std::fs::write(&file, "").unwrap();
    let told = fails(&run(folder.path(), &["db", "restore", file.to_str().unwrap()]), 2, "INVALID_PARAMS");
    says(&told, &["backup is empty"], &[]);
}

#[test]
fn an_unknown_flag_is_no_value() {
    let folder = temp();
    for arguments in
        [&["send", "demo", "--off", "hi"][..], &["bots", "show", "--off"], &["db", "restore", "--off", "x"]]
    {
        let (_, told) = ends(&run(folder.path(), arguments), 2);
        says(&told, &["unexpected argument '--off'"], &["as a value", "-- --off"]);
    }
    // A flag of that name exists, or a text begins with a dash.
    let similar = run(folder.path(), &["send", "demo", "ada", "--wiat", "hi"]);
    assert!(stderr(&similar).contains("'--wait'"), "{}", stderr(&similar));
    let text = run(folder.path(), &["send", "demo", "ada", "-:)"]);
    assert!(stderr(&text).contains("as a value"), "{}", stderr(&text));
}
