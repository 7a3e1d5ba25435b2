//! What backs tools (DESIGN 11): integrations with the credentials they need and the probe that asks them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::credential::{Credential, credential};
use super::probe::{Probe, probe};
use super::sections::{HOUR, MINUTE, SECOND};
use crate::yaml::{At, Fields};

/// Longest setup hint, in bytes.
pub(super) const HINT_MAX: usize = 512;

/// Something that backs tools: an account, an API, an installation.
#[derive(Clone, Debug, PartialEq)]
pub struct Integration {
    /// Its name; unique.
    pub id: Arc<str>,
    /// What must be there.
    pub credentials: Vec<Credential>,
    /// What somebody has to do so that it is.
    pub setup_hint: Option<Arc<str>>,
    /// How long an answer of the probe is good.
    pub ttl: Duration,
    /// How it is asked; `None`: credentials alone decide.
    pub probe: Option<Arc<Probe>>,
}

/// How readiness is found out.
#[derive(Clone, Debug, PartialEq)]
pub struct Readiness {
    /// Whether probes are made.
    pub background: bool,
    /// Probes at the same time, over all integrations.
    pub probes_max: usize,
    /// Where the credentials stand that backends declare by name.
    pub credentials: BTreeMap<Arc<str>, Credential>,
}

/// Every place that a credential is looked for.
pub(super) fn places<'a>(
    integrations: &'a BTreeMap<Arc<str>, Integration>,
    readiness: &'a Readiness,
) -> impl Iterator<Item = &'a Credential> {
    let of_probes = integrations.values().filter_map(|integration| integration.probe.as_deref());
    integrations
        .values()
        .flat_map(|integration| &integration.credentials)
        .chain(readiness.credentials.values())
        .chain(of_probes.flat_map(Probe::credentials))
}

impl Probe {
    /// The places that the probe takes credentials from.
    pub fn credentials(&self) -> impl Iterator<Item = &Credential> {
        let of_request = self.request.iter().flat_map(|request| {
            [&request.url].into_iter().chain(request.headers.iter().map(|(_, value)| value)).chain(&request.body)
        });
        let of_oauth = self.oauth.iter().flat_map(|oauth| {
            [&oauth.token_url, &oauth.client_id, &oauth.refresh_token].into_iter().chain(&oauth.client_secret)
        });
        of_request.chain(of_oauth).chain(&self.proxy).flat_map(|template| template.credentials())
    }

    /// Files that it reads besides those of credentials.
    pub fn tls_files(&self) -> impl Iterator<Item = &PathBuf> {
        self.tls.ca_file.iter().chain(&self.tls.client_file)
    }
}

pub(super) fn integrations(at: At<'_>, directory: &Path) -> Option<BTreeMap<Arc<str>, Integration>> {
    let all = at.entries(|id, at| {
        if !(1..=64).contains(&id.len()) || id.contains(|c: char| c.is_control() || c.is_whitespace() || c == '/') {
            let message = "the name of an integration has 1 to 64 bytes, without spaces and `/`";
            return at.fail_key(message, |problem| problem);
        }
        if &**id == NONE {
            return at.fail_key("`none` stands for no integration", |problem| problem.help("choose another name"));
        }
        at.map(|f| integration(f, id, directory))
    })?;
    Some(all.into_iter().collect())
}

/// The word for no integration, over what a backend declares.
pub(super) const NONE: &str = "none";

const CREDENTIALS: &str = "What must be there; if one is missing, the tools are not set up.";
const HINT: &str = "What somebody has to do so that it is set up; ends the answer to a call that was not made.";
const PROBE: &str = "How the service is asked; left out: credentials alone decide.";
const TTL: &str = "How long an answer of the probe is good.";

fn integration(f: &Fields<'_>, id: &Arc<str>, directory: &Path) -> Integration {
    Integration {
        id: Arc::clone(id),
        credentials: f
            .opt("credentials_required", CREDENTIALS, |at| at.list(|at| credential(at, directory)))
            .unwrap_or_default(),
        setup_hint: f.opt("setup_hint", HINT, |at| at.line(HINT_MAX)),
        ttl: f.duration("ttl", TTL, 5 * MINUTE, SECOND..=HOUR),
        probe: f.opt("probe", PROBE, |at| probe(at, directory)).map(Arc::new),
    }
}

pub(super) fn readiness(f: &Fields<'_>, directory: &Path) -> Readiness {
    let background =
        "Ask integrations by their probes; `false` makes no request, so that nothing but credentials decides.";
    let mapped =
        "Where credentials stand that backends declare by name; what is not named here is never held against a tool.";
    let credentials = |at: At<'_>| at.entries(|_, at| credential(at, directory));
    Readiness {
        background: f.flag("background", background, true),
        probes_max: f.count("probes_max", "Probes at the same time.", 4, 1..=64),
        credentials: f.opt("credentials", mapped, credentials).unwrap_or_default().into_iter().collect(),
    }
}
