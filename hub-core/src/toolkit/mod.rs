//! Tools that work with a whole hub: the demo, presets, replays and the hub for tests.

#[cfg(feature = "sim")]
pub mod demo;
pub mod presets;
pub mod replay;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
