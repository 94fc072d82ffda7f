//! The simulated network as a process of its own.

use std::process::{Command, Stdio};

use crate::{
    hubs::temp,
    program::{command, refuses, run, stderr},
};

#[test]
fn a_simulator_of_its_own() {
    use std::io::{BufRead, BufReader};
    let folder = temp();
    let mut command = command(folder.path());
    command.args(["sim", "serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let ready = lines.next().unwrap().unwrap();
    let url = ready.strip_prefix("ready ").unwrap().to_owned();
    refuses(folder.path(), &["sim", "say", "hi", "--sim", &url], 5, "NOT_FOUND");
    let reset = run(folder.path(), &["sim", "reset", "--sim", &url]);
    assert_eq!(reset.status.code(), Some(0), "{}", stderr(&reset));
    let taken = url.trim_start_matches("http://");
    refuses(folder.path(), &["sim", "serve", "--listen", taken], 2, "INVALID_PARAMS");
    Command::new("kill").args(["-TERM", &server.id().to_string()]).status().unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0));
}
