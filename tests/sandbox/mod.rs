//! Plugins in their processes: what authors see, what attackers reach, what the hub keeps.

mod attacks;
mod authors;
mod boundaries;
mod confinement;
mod generated;
mod stage;
mod together;
mod unfiltered;
mod web;
