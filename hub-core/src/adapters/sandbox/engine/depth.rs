//! Stack size for a thousand nested calls. The engine limits bytes, and the bytes per call depend on compiler and
//! processor, so they are measured once per process.

use std::sync::LazyLock;

use rquickjs::Runtime;

use super::program::compiling_context;

/// Call depth of a plugin: 1000, of which the hook and the call into the engine are two.
const LEVELS: usize = 998;
/// Bytes per call if the measurement fails, as in a release build on x86-64.
const USUAL: usize = 640;

/// Size of one engine value in bytes. A frame of the smallest function has one value fewer than the measured one.
const VALUE: usize = 16;

/// Bytes of stack that let the smallest function recurse at most a thousand levels. Functions with arguments and
/// locals stop earlier.
pub(super) static STACK: LazyLock<usize> = LazyLock::new(|| {
    let (low, high) = (128 << 10, 256 << 10);
    let per_level = match (levels(low), levels(high)) {
        (Some(few), Some(many)) if many > few => ((high - low) / (many - few)).saturating_sub(VALUE),
        _ => USUAL,
    };
    // More than 16 MiB would mean no limit to the engine, and threads have less.
    (per_level * LEVELS).min(4 << 20)
});

fn levels(stack: usize) -> Option<usize> {
    let runtime = Runtime::new().ok()?;
    runtime.set_max_stack_size(stack);
    let context = compiling_context(&runtime).ok()?;
    let count = "(() => { let n = 0; function f() { n++; f() } try { f() } catch {} return n })()";
    context.with(|ctx| ctx.eval::<usize, _>(count)).ok()
}
