//! What is known beside the document of one key and never stored: the judge's window, the count of users for widening, the
//! tools of a failing backend, the probe schedule, and the claims.

use std::sync::Arc;
use std::time::Duration;

use super::claim::Claims;
use super::judge::Window;
use super::retest::Probing;
use super::scope::Widening;
use crate::clock::Tick;

/// Evidence of one slot.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub(super) window: Window,
    pub(super) widening: Widening,
    pub(super) tools: Tools,
    pub(super) probing: Probing,
    pub(super) claims: Claims,
}

impl Evidence {
    /// After a recovery: nothing that was counted before it counts on.
    pub(super) fn forget_failures(&mut self) {
        self.window = Window::default();
        self.widening.clear();
        self.tools.clear();
    }
}

/// Tools that make a backend look dead as a whole, and the least share of the tools that were called (STATE 4.9, P2).
const TOOLS_DOWN: usize = 3;
const SHARE_TENTHS: usize = 6;
const CALLED_WITHIN: Duration = Duration::from_secs(60);
/// Tools of a backend that are watched at once.
const TOOLS_MAX: usize = 64;

/// The tools of one backend that were called lately without any success; kept on the slot of its `*` entry.
#[derive(Debug, Default)]
pub(super) struct Tools(Vec<Called>);

#[derive(Debug)]
struct Called {
    tool: Arc<str>,
    at: Tick,
    down: bool,
}

impl Tools {
    /// Counts a call that did not succeed, and whether it leaves its tool DOWN.
    pub(super) fn called(&mut self, tool: &Arc<str>, down: bool, now: Tick) {
        self.0.retain(|called| now.since(called.at) <= CALLED_WITHIN && called.tool != *tool);
        if self.0.len() < TOOLS_MAX {
            self.0.push(Called { tool: Arc::clone(tool), at: now, down });
        }
    }

    /// Any success of any tool.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether at least three tools, and six in ten of those called in the last minute, are DOWN and none succeeded: not
    /// before them either, `succeeded` being when any tool of the backend did last.
    pub(super) fn look_dead(&self, succeeded: Option<Tick>, now: Tick) -> bool {
        if succeeded.is_some_and(|at| now.since(at) <= CALLED_WITHIN) {
            return false;
        }
        let lately = || self.0.iter().filter(|called| now.since(called.at) <= CALLED_WITHIN);
        let down = lately().filter(|called| called.down).count();
        down >= TOOLS_DOWN && down * 10 >= lately().count() * SHARE_TENTHS
    }
}
