//! The data path: what a call passes between the dispatcher and the tool backend. `service` shows the order.
//!
//! | module | does |
//! | --- | --- |
//! | `service` | routes and identifies a request, then hands it to `mcp` or `http_tool` |
//! | `mcp`, `call`, `list`, `http_tool` | one kind of request each, from the gate to the answer |
//! | `access`, `declared`, `unknown` | does the tool exist for the caller, is it allowed and set up; answering as if it did not exist |
//! | `gate`, `ticket` | may it pass; the one record of a call that did |
//! | `observe`, `observe_http`, `decode`, `splice`, `reading` | reading along, and what was read as the rules want it |
//! | `inflight`, `tasks`, `streams`, `asked` | where an answer may arrive, and who can be told something |
//! | `manifest`, `catalogue`, `listed`, `facts`, `answer` | what we say: in the tool list, to a model, on the wire |
//! | `effects`, `confirm`, `notify`, `dues` | what follows from a judgement |
//! | `identity`, `tokens` | who calls: headers, and bearer tokens that verify |
//! | `documents` | keys and OpenAPI documents, kept in the background |
//! | `net` | sockets, HTTP, bodies |

mod access;
mod answer;
mod asked;
mod call;
mod catalogue;
mod confirm;
mod connections;
mod declared;
mod decode;
mod desk;
mod documents;
mod dues;
mod effects;
mod facts;
mod gate;
mod http_tool;
mod identity;
mod inflight;
mod list;
mod listed;
mod manifest;
mod mcp;
pub mod net;
mod notify;
mod observe;
mod observe_http;
mod probe;
mod reading;
mod route;
mod service;
mod shared;
mod splice;
mod streams;
mod tasks;
mod ticket;
mod tokens;
mod unknown;
mod visit;

pub use catalogue::{Entry, Hidden};
pub use connections::Counted;
pub use service::Proxy;
pub use shared::{Parts, Random, RuleSet};
pub use tokens::count_keys;
