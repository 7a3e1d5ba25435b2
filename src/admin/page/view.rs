//! What every view has around it: its name, the way to the others, and how fresh it is.

use super::words::Moment;
use crate::admin::Admin;
use crate::admin::guard::{LOCAL, NOBODY};
use crate::admin::principal::Principal;
use crate::clock::{Now, Wall};
use crate::telemetry::bus::Kind;

/// The views by their paths.
const VIEWS: [(&str, &str); 6] = [
    ("/", "Tools"),
    ("/integrations", "Integrations"),
    ("/rules", "Rules"),
    ("/explain", "Explain"),
    ("/events", "Events"),
    ("/config", "Config"),
];

/// A way to another view.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) path: &'static str,
    pub(super) name: &'static str,
    pub(super) here: bool,
}

/// What surrounds a view.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) title: String,
    pub(super) ways: Vec<Way>,
    /// Whether the script keeps it live.
    pub(super) live: bool,
    /// Kinds of events that the script listens to.
    pub(super) kinds: String,
    pub(super) at: String,
    pub(super) since: Moment,
    pub(super) version: &'static str,
    pub(super) draining: bool,
    /// Whether somebody signed in, and may sign out.
    pub(super) signed_in: bool,
}

impl Frame {
    /// The frame of a view; `path` is where it stands among the others.
    pub(super) fn new((admin, who): (&Admin, &Principal), title: impl Into<String>, path: &str, now: Now) -> Frame {
        let way = |(path_of, name): (&'static str, &'static str)| Way { path: path_of, name, here: path_of == path };
        let at = Wall(now.wall.0.div_euclid(1000) * 1000).to_string();
        Frame {
            title: title.into(),
            ways: VIEWS.map(way).into(),
            live: true,
            kinds: Kind::ALL.map(Kind::as_str).join(" "),
            at: at.get(..19).map(|at| at.replace('T', " ")).unwrap_or_default(),
            since: Moment::new(Wall(admin.life), now.wall),
            version: env!("CARGO_PKG_VERSION"),
            draining: admin.drain.is_leaving(),
            signed_in: *who.name != *LOCAL && *who.name != *NOBODY,
        }
    }

    /// What somebody sees who has not said who he is: nothing of ours.
    pub(super) fn stranger(admin: &Admin) -> Frame {
        let (now, nobody) = (admin.clock.now(), Principal::new(NOBODY, &[]));
        Frame { live: false, ways: Vec::new(), draining: false, ..Frame::new((admin, &nobody), "Sign in", "", now) }
    }

    /// The same for a view that stays as it is.
    pub(super) fn still(self) -> Frame {
        Frame { live: false, ..self }
    }
}
