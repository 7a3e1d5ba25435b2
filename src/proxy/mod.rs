//! The data path: what a call passes between the dispatcher and the tool backend. `service` shows the order.
//!
//! | module | does |
//! | --- | --- |
//! | `service` | routes and identifies a request, then hands it to `mcp` or `http_tool` |
//! | `mcp`, `call`, `list`, `http_tool` | one kind of request each, from the gate to the answer |
//! | `gate`, `ticket` | may it pass; the one record of a call that did |
//! | `observe`, `observe_http`, `decode`, `splice`, `reading` | reading along, and what was read as the rules want it |
//! | `inflight`, `tasks`, `streams`, `asked` | where an answer may arrive, and who can be told something |
//! | `manifest`, `facts`, `answer` | what we say: in the tool list, to a model, on the wire |
//! | `effects`, `confirm`, `notify`, `dues` | what follows from a judgement |
//! | `net` | sockets, HTTP, bodies |

mod answer;
mod asked;
mod call;
mod confirm;
mod decode;
mod dues;
mod effects;
mod facts;
mod gate;
mod http_tool;
mod identity;
mod inflight;
mod list;
mod manifest;
mod mcp;
pub mod net;
mod notify;
mod observe;
mod observe_http;
mod probe;
mod reading;
mod service;
mod shared;
mod splice;
mod streams;
mod tasks;
mod ticket;
mod visit;

pub use service::Proxy;
pub use shared::{Parts, Random, RuleSet};
