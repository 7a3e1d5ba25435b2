//! The transport half of the proxy: listeners, connections, limits, the upstream pool, forwarding and bodies.
//!
//! It knows HTTP and sockets and nothing of tools, rules or health. [`serve`] hands every request to one service and
//! sends what it answers; [`Upstream::forward`] carries a request to the backend and brings the answer back as a stream.
//! Nothing here holds a body to read it: [`Observed`] reads along, [`collect`] holds a bounded prefix when it is asked to.

mod answer;
mod body;
mod collect;
mod conn;
mod connect;
mod drain;
mod expect;
mod fault;
mod forward;
mod h1;
mod h2;
mod idle;
mod limits;
mod observe;
mod own;
mod serve;
mod upgrade;
mod upstream;
mod wire;

pub use body::Body;
pub use collect::{Collected, collect};
pub use conn::ConnInfo;
pub use drain::{Drain, DrainSignal, Phase};
pub use fault::{Fault, Side};
pub use forward::{ForwardPolicy, HostPolicy, Passage};
pub use limits::{CallLimit, CallPermit, Limits, LimitsError};
pub use observe::{BodyObserver, End, Observed};
pub use serve::{Bound, serve};
pub use upstream::{HttpVersion, Upstream, UpstreamSettings};
