//! The admin surface over real sockets: who may come in, what writes do, what is told of them, and what survives a kill.

mod diagnosis;
mod door;
mod events;
mod explain;
mod kill;
mod mcp;
mod notify;
mod overrides;
mod page;
mod server;
mod support;
mod writes;
