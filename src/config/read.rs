//! The root of the file, and what must hold between its parts.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::admin::{self, AdminAccess, Environment};
use super::backend::{Backend, Marks, backend};
use super::integrations::{Integration, integrations, readiness};
use super::sections::{self, MINUTE, SECOND};
use super::tools::{MODES, Overrides, Tools, overrides};
use super::{Config, access, diagnosis, identity, otlp};
use crate::glob::Glob;
use crate::health::{Mode, Tuning};
use crate::yaml::{At, Fields, Place};

/// Where downstream connects if the file does not say.
pub(super) const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8080);
/// Where the admin listener is if the file does not say.
pub(super) const ADMIN: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9090);

/// Patterns of tools that the session itself provides (DESIGN 5).
const SESSION_TOOLS: &str = "client_*";

pub(super) fn config(at: At<'_>, directory: &Path) -> Option<Config> {
    at.map(|f| {
        let (listen, admin, admin_access) = listeners(f, directory);
        let mode = mode(f);
        let backends = backends(f, directory);
        refuse_loops(f, &listen, backends.as_deref().unwrap_or_default());
        let tools = tools(f, directory);
        let integrations = f.opt("integrations", INTEGRATIONS, |at| integrations(at, directory)).unwrap_or_default();
        let readiness = f.section("readiness", READINESS, |f| readiness(f, directory));
        let access = f.section("access", ACCESS, access::access);
        refuse_unknown_integrations(f, &integrations, backends.as_deref().unwrap_or_default(), &tools.0);
        let identity = f.section("identity", IDENTITY, |f| identity::identity(f, directory));
        let diagnosis = f.section("diagnosis", DIAGNOSIS, |f| diagnosis::diagnosis(f, directory));
        let probes = f.section("probes", PROBES, |f| diagnosis::probes(f, directory));
        let notify = f.section("notify", NOTIFY, |f| diagnosis::notify(f, directory));
        let rules = f.section("rules", RULES, |f| sections::rule_files(f, directory));
        let tenants = f.opt("tenants", TENANTS, |at| sections::tenants(at, directory)).unwrap_or_default();
        let manifest = f.section("manifest", "How `tools/list` is annotated.", sections::manifest);
        let tuning = tuning(f);
        let hint_max = f.section("hint", "Recovery times that answers state.", sections::hint_max);
        let store = f.section("store", "Where health documents are kept.", sections::store);
        let record = f.opt("record", RECORD, sections::record);
        let otlp = f.opt("otlp", otlp::OTLP, |at| otlp::otlp(at, directory));
        let limits = f.section("limits", "Bounds on what others may make toolvane hold.", sections::limits);
        let drain_announce = f.duration("drain_announce", ANNOUNCE, 5 * SECOND, Duration::ZERO..=5 * MINUTE);
        let drain_timeout = f.duration("drain_timeout", DRAIN, 25 * SECOND, SECOND..=10 * MINUTE);
        let metrics_tools_max = f.section("metrics", "What is measured.", sections::metrics_tools_max);
        let log = f.section("log", "What is logged and how.", sections::log);
        let backends: Vec<_> = backends?.into_iter().map(|(backend, _)| backend).collect();
        let tools = Tools::new(mode, tools.0, tools.1, &backends);
        Some(Config {
            listen,
            admin,
            admin_access,
            diagnosis,
            probes,
            notify,
            environment: Environment::default(),
            shown: Arc::from(f.at().source().shown()),
            mode,
            backends,
            tools,
            identity,
            rules,
            tenants,
            access,
            integrations,
            readiness,
            manifest,
            tuning,
            hint_max,
            store,
            record,
            otlp,
            limits,
            drain_announce,
            drain_timeout,
            metrics_tools_max,
            log,
        })
    })?
}

const INTEGRATIONS: &str =
    "What backs tools, by name: the credentials it needs, and how it is asked whether it is set up.";
const READINESS: &str = "How it is found out whether integrations are set up.";
const ACCESS: &str = "Which tools callers may list and call, by profile and role.";
const DIAGNOSIS: &str = "Who finds out what unclear failures mean.";
const PROBES: &str = "The credentials that tools are tried with, as headers.";
const NOTIFY: &str =
    "Who is notified: of a first failure, every half hour while it lasts, of the recovery, and of each user concerned.";
const IDENTITY: &str = "Where a caller's identity is read from; of each list the first source that is present wins.";
const RULES: &str = "Rule files laid over the bundled table.";
const TENANTS: &str = "What is different for single tenants, by tenant id.";
const ANNOUNCE: &str = "How long new calls are still taken after SIGTERM, while callers learn that toolvane leaves.";
const RECORD: &str = "Records what calls come to, redacted, one JSON object a line, for `toolvane replay`. Left out: nothing is recorded.";
const DRAIN: &str = "How long running calls may go on after SIGTERM, the time of `drain_announce` included.";

fn mode(f: &Fields<'_>) -> Mode {
    let doc = "`enforce` answers calls of tools that are DOWN itself, `observe` lets every call pass and leaves tool lists as they are.";
    f.word("mode", doc, Mode::Enforce, &MODES)
}

fn tools(f: &Fields<'_>, directory: &Path) -> (Vec<(Glob, Overrides)>, Vec<Glob>) {
    let doc = "Settings by name pattern (`*`, `?`). All that fit apply, a later one over an earlier one, key by key.";
    (f.opt("tools", doc, |at| overrides(at, directory)).unwrap_or_default(), session_tools(f))
}

fn tuning(f: &Fields<'_>) -> Tuning {
    let doc = "Users with the same fault that make it the project's.";
    Tuning {
        history_size: f.section("history", "History of each health document.", sections::history_size),
        cooldown_max: f.section(
            "cooldown",
            "How long a failure of one kind starts no new diagnosis.",
            sections::cooldown_max,
        ),
        widen_after_users: f.count("widen_after_users", doc, 3, 2..=8),
        ..Tuning::default()
    }
}

fn session_tools(f: &Fields<'_>) -> Vec<Glob> {
    let doc = "Name patterns of tools that the client's session provides; their faults stay with the session.";
    let default = Some(serde_json::json!([SESSION_TOOLS]));
    f.with_default("session_tools", doc, default, |at| at.list(|at| at.glob()))
        .unwrap_or_else(|| Glob::new(SESSION_TOOLS).into_iter().collect())
}

fn listeners(f: &Fields<'_>, directory: &Path) -> (Vec<SocketAddr>, SocketAddr, AdminAccess) {
    let doc = "Where downstream connects: an address with port, or a list of them.";
    let placed = |at: At<'_>| at.socket().map(|address| (address, at.place()));
    let listen = f.with_default("listen", doc, Some(LISTEN.to_string().into()), |at| {
        let list = at.one_or_list(placed)?;
        if list.is_empty() { at.fail("`listen` needs at least one address") } else { Some(list) }
    });
    let admin = f.section("admin", "The listener of admin API, metrics and probes.", |f| {
        let listen = f.with_default("listen", "An address with port.", Some(ADMIN.to_string().into()), placed);
        (listen, admin::access(f, directory))
    });
    let listen = listen.unwrap_or_else(|| vec![(LISTEN, Place::START)]);
    let (admin, access) = (admin.0.unwrap_or((ADMIN, Place::START)), admin.1);
    refuse_clashes(f, &listen, admin);
    (listen.into_iter().map(|(address, _)| address).collect(), admin.0, access)
}

fn refuse_clashes(f: &Fields<'_>, listen: &[(SocketAddr, Place)], admin: (SocketAddr, Place)) {
    for (index, (address, place)) in listen.iter().enumerate() {
        if listen.iter().take(index).any(|(earlier, _)| clash(*earlier, *address)) {
            f.at().fail_at::<()>(*place, format!("`{address}` is taken by an address before it"), |problem| problem);
        }
        if clash(*address, admin.0) {
            let place = if admin.1 == Place::START { *place } else { admin.1 };
            let message = format!("`listen` and `admin.listen` cannot both have port {}", address.port());
            f.at().fail_at::<()>(place, message, |problem| problem.help("give the admin listener a port of its own"));
        }
    }
}

/// Port 0 asks for any free one and clashes with none.
fn clash(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() != 0 && one.port() == other.port() && (covers(one.ip(), other.ip()) || covers(other.ip(), one.ip()))
}

/// `::` takes IPv4 as well, unless the system is told otherwise.
fn covers(one: IpAddr, other: IpAddr) -> bool {
    one == other || one.is_unspecified() && (one.is_ipv6() || other.is_ipv4())
}

/// A backend at an address that is our own would send every call back to us.
fn refuse_loops(f: &Fields<'_>, listen: &[SocketAddr], backends: &[(Arc<Backend>, Marks)]) {
    for (backend, marks) in backends {
        if let Some(own) = listen.iter().find(|own| reaches(**own, backend.address())) {
            let message = format!(
                "the `url` of the backend `{}` is where toolvane itself listens (`listen: {own}`): calls would go round in circles",
                backend.name
            );
            f.at().fail_at::<()>(marks.url, message, |problem| {
                problem.help("let the backend listen on another port and name that here, or give `listen` another port")
            });
        }
    }
}

/// Whether who connects to this host and port, from this machine, reaches the listener. Names other than `localhost` are
/// not looked up.
fn reaches(listen: SocketAddr, (host, port): (&str, u16)) -> bool {
    let hosts = match host.parse::<IpAddr>() {
        Ok(ip) => vec![ip.to_canonical()],
        Err(_) if host.trim_end_matches('.').eq_ignore_ascii_case("localhost") => {
            vec![IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), IpAddr::V6(std::net::Ipv6Addr::LOCALHOST)]
        }
        Err(_) => Vec::new(),
    };
    let at = |ip: IpAddr| {
        let local = ip.is_loopback() || ip.is_unspecified();
        let own = listen.ip().to_canonical();
        // Who connects to a wildcard address comes out at the loopback address of its family.
        let loops = ip.is_unspecified() && own.is_loopback() && own.is_ipv4() == ip.is_ipv4();
        own == ip || loops || local && covers(own, ip)
    };
    listen.port() != 0 && listen.port() == port && hosts.into_iter().any(at)
}

fn backends(f: &Fields<'_>, directory: &Path) -> Option<Vec<(Arc<Backend>, Marks)>> {
    let read = f.need("backends", "The upstreams, at least one.", |at| {
        let list = at.list(|at| backend(at, directory))?;
        if list.is_empty() { at.fail("`backends` needs at least one backend") } else { Some(list) }
    })?;
    refuse_doubles(f, &read);
    Some(read)
}

fn refuse_unknown_integrations(
    f: &Fields<'_>,
    known: &BTreeMap<Arc<str>, Integration>,
    backends: &[(Arc<Backend>, Marks)],
    tools: &[(Glob, Overrides)],
) {
    let of_backends =
        backends.iter().filter_map(|(backend, marks)| backend.integration.as_ref().map(|id| (id, marks.integration)));
    let of_tools = tools.iter().filter_map(|(_, overrides)| overrides.integration());
    for (id, place) in of_backends.chain(of_tools).filter(|(id, _)| !known.contains_key(*id)) {
        let names: Vec<&str> = known.keys().map(|id| &**id).collect();
        let help = if names.is_empty() {
            format!("describe it: `integrations: {{{id}: {{credentials_required: [{{env: NAME}}]}}}}`")
        } else {
            format!("known are {}", names.join(", "))
        };
        f.at().fail_at::<()>(place, format!("no integration is named `{id}`"), |problem| problem.help(help));
    }
}

fn refuse_doubles(f: &Fields<'_>, backends: &[(Arc<Backend>, Marks)]) {
    for (index, (backend, marks)) in backends.iter().enumerate() {
        let mut earlier = backends.iter().take(index).map(|(earlier, _)| earlier);
        if earlier.clone().any(|earlier| earlier.name == backend.name) {
            let message = format!("the name `{}` belongs to a backend before it", backend.name);
            f.at().fail_at::<()>(marks.name, message, |problem| problem.help("names of backends are unique"));
        } else if let Some(twin) = earlier.find(|earlier| earlier.matching == backend.matching) {
            let message = format!("`{}` and `{}` match the same requests", twin.name, backend.name);
            f.at().fail_at::<()>(marks.matching, message, |problem| {
                problem.help("tell them apart: `match: {path_prefix: /…}` or `match: {host: …}`")
            });
        }
    }
}
