//! WebSockets and long polls of channel clients over real loopback sockets: the conversation, what ends it, bad
//! frames, and clients of other authors that lose their server.

mod bad_frames;
mod client;
mod clock;
mod conversation;
mod crash;
mod doors;
mod foreign;
mod stage;
mod two_nodes;
