//! Undeclared names of a source, found with the compiler itself.
//!
//! A declaration `let name` at the end of a module makes the compiler emit checked accesses for every use of that name
//! which no inner declaration shadows, and `var name` unchecked ones. So the two bytecodes differ by more than the two
//! declarations if and only if the source uses the name as a global. A name that the module declares itself cannot
//! be declared again.

use std::{collections::BTreeSet, time::Duration};

use rquickjs::{Ctx, Module, Runtime, WriteOptions, object::Filter};

use super::{
    super::{
        Deadline,
        hook::{MAX_NAME, MAX_NAMES},
        tokens::tokens,
    },
    program::{PLUGIN, Uses, compiling_runtime},
};

/// Time of the search; a plugin of a hundred lines takes some ten milliseconds.
const TIME: Duration = Duration::from_secs(2);

/// The names that a source uses, that it does not declare, and that are not among `globals`; sorted. Those that are
/// not found within [`TIME`], or exceed the caps, are left out.
pub(in super::super) fn unknown(source: &str) -> Vec<String> {
    let globals = globals().unwrap_or_default();
    let names: BTreeSet<&str> = tokens(source)
        .into_iter()
        .filter(|token| token.is_name() && token.text.len() <= MAX_NAME && !globals.contains(token.text))
        .map(|token| token.text)
        .collect();
    let names: Vec<&str> = names.into_iter().collect();
    let mut search = Search { source, deadline: Deadline::in_(TIME), found: Vec::new() };
    // Keywords are no names to the compiler, and would spoil the search for their neighbours.
    let usable: Vec<&str> = names.into_iter().filter(|name| can_declare(name)).collect();
    search.search(&usable);
    search.found
}

/// All globals of a plugin.
pub(in super::super) fn globals() -> Option<BTreeSet<String>> {
    let runtime = Runtime::new().ok()?;
    let context = Uses::ALL.context(&runtime).ok()?;
    context.with(|ctx| {
        super::define_globals(&ctx).ok()?;
        let names = ctx.globals().own_keys::<String>(Filter::new().string());
        names.collect::<rquickjs::Result<_>>().ok()
    })
}

struct Search<'s> {
    source: &'s str,
    deadline: Deadline,
    found: Vec<String>,
}

impl Search<'_> {
    /// Finds the unknown ones of some names, in halves as long as there is something to find in both.
    fn search(&mut self, names: &[&str]) {
        if names.is_empty() || self.found.len() == MAX_NAMES || self.deadline.over() {
            return;
        }
        let uses = self.difference(names).map(|uses| Some(uses) != self.difference(&fresh(names.len())));
        match (uses, names) {
            // All are declared, by the sandbox or by the module.
            (Some(false), _) | (None, [_]) => {}
            (Some(true), [name]) => self.found.push((*name).to_owned()),
            (_, names) => {
                let (left, right) = names.split_at(names.len() / 2);
                self.search(left);
                self.search(right);
            }
        }
    }

    /// By how many bytes the bytecode is longer, and how many differ, when names are checked and when they are not; `None`
    /// when they cannot be declared.
    fn difference<N: AsRef<str>>(&self, names: &[N]) -> Option<(isize, usize)> {
        let list: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        let list = list.join(", ");
        let compile = |word: &str| code(&format!("{}\n{word} {list};", self.source));
        let (checked, unchecked) = (compile("let")?, compile("var")?);
        let differ = checked.iter().zip(&unchecked).filter(|(a, b)| a != b).count();
        Some((checked.len().cast_signed() - unchecked.len().cast_signed(), differ))
    }
}

fn can_declare(name: &str) -> bool {
    code(&format!("let {name};")).is_some()
}

/// As many names as wanted that no source has.
fn fresh(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("hub$unused${number}")).collect()
}

/// The bytecode of a source but for its head, which has a checksum.
fn code(source: &str) -> Option<Vec<u8>> {
    /// Version and checksum.
    const HEAD: usize = 5;
    let (_runtime, context) = compiling_runtime().ok()?;
    context.with(|ctx: Ctx<'_>| {
        let options = WriteOptions { strip_source: true, strip_debug: true, ..WriteOptions::default() };
        let module = Module::declare(ctx, PLUGIN, source).ok()?;
        Some(module.write(options).ok()?.split_off(HEAD))
    })
}
