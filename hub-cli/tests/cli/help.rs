//! Help for people and for scripts.

use crate::{
    hubs::temp,
    program::{run, stdout},
};

#[test]
fn help_tells_what_scripts_need() {
    let folder = temp();
    let codes = run(folder.path(), &["help", "exit-codes"]);
    for code in ["  0  done", "  7  nobody answers", "130  interrupted"] {
        assert!(stdout(&codes).contains(code), "{code}");
    }
    assert!(stdout(&run(folder.path(), &["help", "env"])).contains("HUB_DATA_DIR"));
    assert!(stdout(&run(folder.path(), &["help", "sim", "say"])).contains("--as <PERSON>"));
    assert_eq!(run(folder.path(), &["--version"]).status.code(), Some(0));
}
