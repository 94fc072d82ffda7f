//! Upper bound on the work of an expression over all messages, computed from its tree alone.
//!
//! Sizes and work are counted in KiB that are read or copied. A list of `n` entries is at least `n` large, so a
//! size bounds a length too.

use cel::common::ast::{ComprehensionExpr, Expr, LiteralValue};

/// Levels of the tree. An evaluation takes a few KiB of stack per level, tens without optimisation.
const MAX_DEPTH: usize = 20;
/// The work allowed for one message: some milliseconds at most.
const MAX_COST: u64 = 32 * 1024;

/// The variables, with their sizes. Texts of messages have at most 64 KiB.
const VARIABLES: [(&str, u64); 9] = [
    ("type", 1),
    ("content", 64),
    ("sender", 2),
    ("sessionID", 1),
    ("msg_type", 1),
    ("message_type", 1),
    ("timestamp", 1),
    ("bot_id", 1),
    ("channel_id", 1),
];

/// Allowed functions whose result is no larger than a number.
const SMALL: [&str; 19] = [
    "_==_",
    "_!=_",
    "_>=_",
    "_<=_",
    "_>_",
    "_<_",
    "_&&_",
    "_||_",
    "!_",
    "-_",
    "_-_",
    "_/_",
    "_%_",
    "@in",
    "@not_strictly_false",
    "size",
    "contains",
    "startsWith",
    "endsWith",
];
/// Allowed functions whose result is no larger than their arguments together.
const LARGE: [&str; 7] = ["_?_:_", "_+_", "_*_", "_[_]", "string", "int", "double"];

/// Bounds of one node: the work to evaluate it, and the size of its value.
#[derive(Clone, Copy)]
struct Bounds {
    cost: u64,
    size: u64,
    /// Entries, when it is a list or a map.
    length: u64,
    /// Size of the largest entry.
    entry: u64,
}

/// A variable bound by a macro, and the scope around it.
struct Scope<'a> {
    name: &'a str,
    size: u64,
    outer: Option<&'a Self>,
}

/// Refuses an expression that is too deep, costs too much or uses an unknown name.
pub(crate) fn check(expression: &Expr) -> Result<(), String> {
    let bounds = measure(expression, None, MAX_DEPTH)?;
    if bounds.cost > MAX_COST { Err("can take too long for large messages".to_owned()) } else { Ok(()) }
}

impl Bounds {
    fn new(cost: u64, size: u64) -> Self {
        Self { cost, size, length: size, entry: size }
    }
}

fn measure(node: &Expr, scope: Option<&Scope<'_>>, levels: usize) -> Result<Bounds, String> {
    let levels = levels.checked_sub(1).ok_or("is nested too deeply")?;
    match node {
        Expr::Literal(literal) => Ok(Bounds::new(1, literal_size(literal))),
        Expr::Ident(name) => Ok(Bounds::new(1, variable_size(name, scope)?)),
        Expr::Select(select) => {
            let operand = measure(&select.operand.expr, scope, levels)?;
            Ok(Bounds::new(operand.cost.saturating_add(operand.size), operand.size))
        }
        Expr::Call(call) => {
            let name = call.func_name.as_str();
            let small = SMALL.contains(&name);
            if !small && !LARGE.contains(&name) {
                return Err(format!("calls `{name}`, which does not exist"));
            }
            let arguments = call.target.as_deref().into_iter().chain(&call.args).map(|node| &node.expr);
            let sum = collect(arguments, scope, levels)?;
            let cost = sum.cost.saturating_add(sum.size);
            Ok(if small { Bounds::new(cost, 1) } else { Bounds { cost, ..sum } })
        }
        Expr::List(list) => {
            let list = collect(list.elements.iter().map(|node| &node.expr), scope, levels)?;
            Ok(Bounds { cost: list.cost.saturating_add(list.size), ..list })
        }
        Expr::Comprehension(comprehension) => measure_loop(comprehension, scope, levels),
        Expr::Map(_) | Expr::Struct(_) => Err("cannot contain maps or structures".to_owned()),
        Expr::Unspecified => Err("is incomplete".to_owned()),
    }
}

/// Measures several nodes as one list.
fn collect<'a>(
    nodes: impl Iterator<Item = &'a Expr>,
    scope: Option<&Scope<'_>>,
    levels: usize,
) -> Result<Bounds, String> {
    let mut sum = Bounds { cost: 1, size: 1, length: 0, entry: 1 };
    for node in nodes {
        let bounds = measure(node, scope, levels)?;
        sum.cost = sum.cost.saturating_add(bounds.cost);
        sum.size = sum.size.saturating_add(bounds.size);
        sum.length += 1;
        sum.entry = sum.entry.max(bounds.size);
    }
    Ok(sum)
}

/// Measures the loop of a macro, which carries a value through all entries of a list.
fn measure_loop(
    comprehension: &ComprehensionExpr,
    scope: Option<&Scope<'_>>,
    levels: usize,
) -> Result<Bounds, String> {
    let range = measure(&comprehension.iter_range.expr, scope, levels)?;
    let start = measure(&comprehension.accu_init.expr, scope, levels)?;
    let entry = Scope { name: &comprehension.iter_var, size: range.entry, outer: scope };
    let second_name = comprehension.iter_var2.as_deref().unwrap_or(&comprehension.iter_var);
    let second = Scope { name: second_name, size: range.entry, outer: Some(&entry) };
    // The growth per step is measured with an empty carried value; the carried value is copied by every step.
    let carried = Scope { name: &comprehension.accu_var, size: 0, outer: Some(&second) };
    let condition = measure(&comprehension.loop_cond.expr, Some(&carried), levels)?;
    let step = measure(&comprehension.loop_step.expr, Some(&carried), levels)?;
    let result = measure(&comprehension.result.expr, Some(&carried), levels)?;
    let size = range.length.saturating_mul(step.size).saturating_add(start.size);
    let round =
        condition.cost.saturating_add(step.cost).saturating_add(match &comprehension.accu_init.expr {
            Expr::List(_) => size,
            _ => 1,
        });
    let cost = range.length.saturating_mul(round);
    let cost = [range.cost, start.cost, result.cost].into_iter().fold(cost, u64::saturating_add);
    Ok(Bounds { cost, size, length: size, entry: step.size })
}

fn variable_size(name: &str, scope: Option<&Scope<'_>>) -> Result<u64, String> {
    let mut inner = scope;
    while let Some(scope) = inner {
        if scope.name == name {
            return Ok(scope.size);
        }
        inner = scope.outer;
    }
    let known = VARIABLES.iter().find(|(variable, _)| *variable == name);
    known.map(|(_, size)| *size).ok_or_else(|| {
        let names: Vec<&str> = VARIABLES.iter().map(|(variable, _)| *variable).collect();
        let shown: String = name.chars().take(32).collect();
        format!("refers to `{shown}`; a message has {}", names.join(", "))
    })
}

fn literal_size(literal: &LiteralValue) -> u64 {
    match literal {
        LiteralValue::String(text) => text.inner().len() as u64 / 1024 + 1,
        _ => 1,
    }
}
