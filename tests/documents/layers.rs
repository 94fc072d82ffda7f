//! The order of the modules: a module imports only modules that are declared before it, so that there is no circle.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use super::workspace;

/// The modules of each crate from bottom to top; what follows `#` is a comment.
const ORDER: [(&str, &str); 3] = [
    (
        "hub-core",
        "
        base        # values, text, time and files
        adapters    # the outside world: know no user, channel or SQL
        rules       # pure functions
        model       # records and settings
        store       # the only module with SQL
        node        # the state of this process
        domain      # the nouns
        engine      # what works through the nouns by itself
        hub
        toolkit     # what works with a hub
        ",
    ),
    (
        "hub-server",
        "
        advice paths client rate_limit envelope headers body_cap wire       # HTTP
        files serve metrics settings
        app_calls credentials appearance
        gateway
        api mcp older_paths parameters oauth_complete webhook_payload openapi docs     # endpoints
        console login_page                                                  # pages
        routes edge metrics_page path_prefix app in_process
        config running_server banner boot command_line health otel logging         # the program
        service_manager with_simulator
        ",
    ),
    (
        "hub-cli",
        "
        signals panics suggest screen document exit jq table printer        # the terminal
        ask browser profiles fields args
        poll local sim_client client context completion
        commands
        ",
    ),
];

/// A source file: where it is in the tree of modules, and what it has outside its tests.
struct Source {
    file: PathBuf,
    module: Vec<String>,
    /// Its code without comments and literals.
    text: String,
    literals: Vec<String>,
}

/// What a source file has outside its tests.
struct Stripped {
    /// Its code, in which comments, literals and tests are blank.
    text: String,
    literals: Vec<String>,
    /// The names of the modules in other files that are only for tests.
    tests: Vec<String>,
}

/// Separates code, literals and what follows `#[cfg(test)]`.
fn without_tests(source: &str) -> Stripped {
    let literal = regex::Regex::new(
        r##"(?s)//[^\n]*|/\*.*?\*/|r#*"(?:[^"]|"[^#;,)\s])*"#*|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^\\'])'"##,
    )
    .unwrap();
    let blank = |found: &regex::Captures<'_>| " ".repeat(found[0].len());
    let mut text = literal.replace_all(source, blank).into_owned();
    let (attribute, mut tests, mut ranges) = ("#[cfg(test)]", Vec::new(), Vec::new());
    while let Some(start) = text.find(attribute) {
        let rest = &text[start + attribute.len()..];
        let end = end_of_item(rest);
        let item = rest[..end].trim();
        if let Some((_, name)) = item.strip_suffix(';').and_then(|item| item.rsplit_once("mod ")) {
            tests.push(name.trim().to_owned());
        }
        let range = start..start + attribute.len() + end;
        text.replace_range(range.clone(), &" ".repeat(range.len()));
        ranges.push(range);
    }
    let literals = literal
        .find_iter(source)
        .filter(|found| {
            !found.as_str().starts_with('/') && !ranges.iter().any(|of| of.contains(&found.start()))
        })
        .map(|found| found.as_str().to_owned())
        .collect();
    Stripped { text, literals, tests }
}

/// Where the item ends with which a text begins: behind its `;` or its last brace.
fn end_of_item(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && c == '}' {
                    return at + 1;
                }
            }
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The files of a crate that are no tests.
fn sources(folder: &Path) -> Vec<Source> {
    let (mut found, mut tests, mut folders) = (Vec::new(), Vec::new(), vec![folder.to_owned()]);
    while let Some(current) = folders.pop() {
        for entry in fs::read_dir(&current).unwrap() {
            let file = entry.unwrap().path();
            if file.is_dir() {
                folders.push(file);
            } else if file.extension().is_some_and(|extension| extension == "rs") {
                let inside = file.strip_prefix(folder).unwrap().with_extension("");
                let mut module: Vec<_> =
                    inside.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
                if module.len() == 1 && matches!(&*module[0], "lib" | "main") {
                    continue;
                }
                module.pop_if(|last| last == "mod");
                let Stripped { text, literals, tests: outside } =
                    without_tests(&fs::read_to_string(&file).unwrap());
                tests.extend(outside.into_iter().map(|name| [&module[..], &[name]].concat()));
                found.push(Source { file, module, text, literals });
            }
        }
    }
    let of_root = without_tests(&fs::read_to_string(root(folder)).unwrap()).tests;
    tests.extend(of_root.into_iter().map(|name| vec![name]));
    // A file that is included by `#[path]` has the name of its module as the end of its own.
    let is_test = |module: &[String]| {
        tests.iter().any(|test| module.starts_with(test))
            || module.last().is_some_and(|name| name.ends_with("_tests"))
    };
    found.retain(|source| !is_test(&source.module));
    found
}

fn root(folder: &Path) -> PathBuf {
    let library = folder.join("lib.rs");
    if library.exists() { library } else { folder.join("main.rs") }
}

/// Every path of the crate that a text names, as segments from the root of the crate.
fn paths(text: &str, module: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let start = regex::Regex::new(r"\b(?:crate|super)(?:\s*::\s*super)*\s*::\s*").unwrap();
    for head in start.find_iter(text) {
        let ups = head.as_str().matches("super").count();
        let base = if ups == 0 { Vec::new() } else { module[..module.len().saturating_sub(ups)].to_vec() };
        expand(&text[head.end()..], &base, &mut found);
    }
    found
}

/// Adds the paths of a tree of imports, `{a::b, c}` or `a::b`.
fn expand(tree: &str, base: &[String], found: &mut Vec<Vec<String>>) {
    let tree = tree.trim_start();
    if let Some(inner) = tree.strip_prefix('{') {
        let (mut depth, mut from) = (0, 0);
        for (at, c) in inner.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    expand(&inner[from..at], base, found);
                    if c == '}' {
                        return;
                    }
                    from = at + 1;
                }
                _ => {}
            }
        }
        return;
    }
    let name: String = tree.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    if !name.is_empty() {
        found.push([base, &[name]].concat());
    }
}

/// What a crate imports against its order: file, module and imported module.
fn violations(folder: &Path, order: &[&str]) -> BTreeSet<String> {
    let place: BTreeMap<_, _> = order.iter().enumerate().map(|(place, name)| (*name, place)).collect();
    assert_eq!(place.len(), order.len(), "a module is declared twice");
    let root = without_tests(&fs::read_to_string(root(folder)).unwrap()).text;
    // `pub use error::Error;` in the root: `crate::Error` is of the module `error`.
    let reexported = regex::Regex::new(r"pub(?:\(crate\))? use (\w+)::([^;]+);").unwrap();
    let reexports: BTreeMap<String, String> = reexported
        .captures_iter(&root)
        .flat_map(|found| {
            let module = found[1].to_owned();
            let names: Vec<_> = found[2]
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .map(|name| (name.to_owned(), module.clone()))
                .collect();
            names
        })
        .collect();
    let mut wrong = BTreeSet::new();
    for source in sources(folder) {
        let own = &*source.module[0];
        let Some(at) = place.get(own) else {
            wrong.insert(format!("{own} is not declared in the order of modules"));
            continue;
        };
        for path in paths(&source.text, &source.module) {
            let name = reexports.get(&path[0]).unwrap_or(&path[0]);
            if place.get(&**name).is_some_and(|imported| imported > at) {
                wrong.insert(format!("{}: {own} imports {name}, which is above it", source.file.display()));
            }
        }
    }
    let modules = regex::Regex::new(r"\bmod (\w+);").unwrap();
    let real: BTreeSet<_> = modules.captures_iter(&root).map(|found| found[1].to_owned()).collect();
    let gone = order.iter().filter(|name| !real.contains(**name));
    wrong.extend(gone.map(|name| format!("{name} is declared and does not exist")));
    wrong
}

fn names(order: &str) -> Vec<&str> {
    order.lines().filter_map(|line| line.split('#').next()).flat_map(str::split_whitespace).collect()
}

#[test]
fn modules_import_only_what_is_declared_before_them() {
    for (krate, order) in ORDER {
        let wrong = violations(&workspace().join(krate).join("src"), &names(order));
        assert!(wrong.is_empty(), "{krate}:\n{}", Vec::from_iter(wrong).join("\n"));
    }
}

/// Commands and variables belong to the frontends; the domain has `Remedy`, `Advice` and `Setting`.
#[test]
fn the_domain_names_no_command_and_no_variable() {
    let foreign = regex::Regex::new(r"hub-cli[^/]|\bHUB_[A-Z]").unwrap();
    let named: Vec<_> = sources(&workspace().join("hub-core/src"))
        .into_iter()
        .flat_map(|source| source.literals.into_iter().map(move |literal| (source.file.clone(), literal)))
        .filter(|(_, literal)| foreign.is_match(literal))
        .collect();
    assert!(named.is_empty(), "{named:#?}");
}

#[test]
fn an_import_against_the_order_is_found_however_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        let file = folder.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    write("lib.rs", "mod low;\nmod high;\npub use high::Thing;\n#[cfg(test)]\nmod testing;\n");
    write("high/mod.rs", "use crate::low::{self, part::Part};\npub struct Thing;\n");
    write("testing.rs", "use crate::high;\n");
    let allowed = "//! `crate::high`\nuse crate::low;\nconst A: &str = \"crate::high\";\n#[cfg(test)]\nmod tests {\n    \
        use crate::high;\n}\n";
    write("low/part.rs", allowed);
    write("low/mod.rs", "pub mod part;\n#[cfg(test)]\nmod checks;\n");
    write("low/checks.rs", "use crate::high::Thing;\n");
    let order = ["low", "high"];
    assert_eq!(violations(folder.path(), &order), BTreeSet::new());
    for import in [
        "use crate::high;",
        "use crate::{low, high::Thing};",
        "use super::super::high;",
        "use super::super::{low::part, high};",
        "use crate::Thing;",
        "pub use crate::high::Thing;",
        "fn f() { crate::high::f() }",
    ] {
        write("low/part.rs", &format!("{allowed}{import}\n"));
        assert_eq!(violations(folder.path(), &order).len(), 1, "{import}");
    }
    write("low/part.rs", "");
    assert_eq!(violations(folder.path(), &["low"]).len(), 1, "a module without a place");
    assert_eq!(violations(folder.path(), &["low", "high", "gone"]).len(), 1, "a place without a module");
}
