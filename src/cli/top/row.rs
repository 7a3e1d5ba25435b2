//! A tool as `/v1/overview` tells of it.

use serde::Deserialize;

use crate::clock::Wall;

/// Which tool of which backend.
pub(super) type Place = (String, String);

/// One tool.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Row {
    pub(super) backend: String,
    pub(super) tool: String,
    status: String,
    retesting: bool,
    pub(super) since: Option<Wall>,
    pub(super) expected_recovery_at: Option<Wall>,
    pub(super) next_trial_at: Option<Wall>,
    pub(super) signature: Option<String>,
    pub(super) note: Option<String>,
    #[serde(rename = "override")]
    forced: Option<serde_json::Value>,
    listed: bool,
    status_reason: Option<String>,
    pub(super) users_affected: u64,
    pub(super) calls_per_minute: f64,
    pub(super) failed_share: Option<f64>,
    pub(super) refused_per_minute: f64,
    pub(super) history: String,
}

/// How a tool stands, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stand {
    Down,
    Retesting,
    Degraded,
    Hidden,
    Ok,
}

impl Stand {
    pub(super) const ALL: [Stand; 5] = [Stand::Down, Stand::Retesting, Stand::Degraded, Stand::Hidden, Stand::Ok];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Stand::Down => "DOWN",
            Stand::Retesting => "RETESTING",
            Stand::Degraded => "DEGRADED",
            Stand::Hidden => "HIDDEN",
            Stand::Ok => "OK",
        }
    }
}

impl Row {
    pub(super) fn place(&self) -> Place {
        (self.backend.clone(), self.tool.clone())
    }

    pub(super) fn stand(&self) -> Stand {
        match self.status.as_str() {
            "DOWN" if self.retesting => Stand::Retesting,
            "DOWN" => Stand::Down,
            "DEGRADED" => Stand::Degraded,
            _ if self.status_reason.is_some() && !self.listed => Stand::Hidden,
            _ => Stand::Ok,
        }
    }

    /// Why it stands so, in one line.
    pub(super) fn reason(&self) -> String {
        let forced = self.forced.as_ref().map(|_| "override".to_owned());
        let hidden = self.status_reason.as_ref().map(|reason| reason.replace('_', " "));
        let users = (self.users_affected > 0).then(|| format!("{} affected", self.users_affected));
        let parts = [forced, hidden, self.signature.clone(), self.note.clone(), users];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }

    /// The day, `width` letters wide, each the worst of what it stands for.
    pub(super) fn day(&self, width: usize) -> String {
        let cells: Vec<char> = self.history.chars().collect();
        let worst = |part: &[char]| {
            let order = ['D', 'G', 'O'];
            let found = order.into_iter().find(|letter| part.contains(letter));
            match found {
                Some('D') => '█',
                Some('G') => '▄',
                Some('O') => '▁',
                _ => '·',
            }
        };
        cells.chunks(cells.len().div_ceil(width.max(1)).max(1)).map(worst).collect()
    }
}

/// How far away a time is: `4m` or `3h05m`.
pub(super) fn distance(at: Option<Wall>, now: Wall) -> String {
    let Some(at) = at else { return String::new() };
    let seconds = (at.0 - now.0).unsigned_abs() / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d", seconds / 86_400),
    }
}
