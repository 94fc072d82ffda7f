//! WebSockets and long polls of channel clients, and WebSockets of apps, over real loopback sockets: the conversation,
//! what ends it, bad frames, and clients of other authors that lose their server.

mod acks;
mod app_doors;
mod app_foreign;
mod app_nodes;
pub mod app_scene;
mod apps;
mod bad_frames;
pub mod client;
mod clock;
mod conversation;
mod crash;
mod doors;
mod events;
mod events_nodes;
mod foreign;
mod listen;
pub mod stage;
mod two_nodes;
