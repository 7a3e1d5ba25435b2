//! The transport half of the proxy: listeners, connections, limits, the upstream pool, forwarding and bodies.
//!
//! It knows HTTP and sockets and nothing of tools, rules or health. [`serve`] hands every request to one service and
//! sends what it answers; [`Upstream::forward`] carries a request to the backend and brings the answer back as a stream.
//! Nothing here holds a body to read it: [`Observed`] reads along, [`collect`] holds a bounded prefix when it is asked to.
//!
//! Plain HTTP/1.1 calls are carried by `plain`. What hyper does for us with all others, and where it sets the limit:
//! - Framing is hyper's. A request with `Transfer-Encoding` and `Content-Length` goes on by its coding alone, without the
//!   length, and its connection is closed after the answer, as RFC 9112, 6.3 demands. hyper drops the length before we see
//!   it, so it cannot be refused; `lengths` closes after every chunked request of a connection that ever stated a length.
//! - Interim answers pass from HTTP/1.1 to HTTP/1.1 (`interim`), beside hyper's server, which cannot send them. Between
//!   peers of which one speaks HTTP/2 they end here: the library has no way to see or send them.
//! - A dispatcher that closes its sending side has gone away, as for nginx and Envoy: a call that is given up looks just
//!   so, and must end at the backend at once.
//! - Trailers pass towards an HTTP/1.1 peer only if `Trailer` names them, and to a dispatcher only if it said
//!   `TE: trailers` (RFC 9110, 6.5.1).
//! - A 304 goes on without `Content-Length`.
//! - `Expect: 100-continue` ends here when the backend speaks HTTP/2: hyper's client does not tell of its 100.

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
mod interim;
mod lengths;
mod limits;
mod observe;
mod own;
mod plain;
mod pool;
mod quiet;
mod rarely;
mod serve;
mod service;
mod upgrade;
mod upstream;
mod watch;
mod wire;
mod workers;

pub use body::Body;
pub use collect::{Collected, at_hand, collect};
pub use conn::ConnInfo;
pub use drain::{Drain, DrainSignal, Phase};
pub use fault::{Cause, Fault, Side};
pub(super) use forward::OutgoingHead;
pub use forward::{ForwardPolicy, HostPolicy, OnTunnelEnd, Passage};
pub use limits::{CallLimit, CallPermit, Limits};
pub use observe::{BodyObserver, End, Observed};
pub use plain::{Repeated, Whole};
pub use serve::{Bound, serve, serve_on};
pub use service::{Answered, Service};
pub use upstream::{HttpVersion, Upstream, UpstreamSettings};
pub use watch::{Open, Watch};
pub use workers::Workers;
