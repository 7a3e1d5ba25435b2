//! The view of the rules in force, in their order, with how often each has decided.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::view::Frame;
use super::words::Pill;
use super::{part, show};
use crate::admin::Admin;
use crate::admin::query::{Parameters, Query};
use crate::admin::target::Who;
use crate::proxy::RuleSet;
use crate::rules::rule::Cooldown;
use crate::rules::{Rule, Table};
use crate::yaml::duration_text;

type Given = Query<BTreeMap<String, String>>;

/// One rule as a line.
struct Line {
    number: usize,
    id: String,
    place: String,
    pill: Pill,
    signature: String,
    action: String,
    cooldown: String,
    note: String,
    hits: u64,
    locked: bool,
}

/// A table that can be chosen.
struct Choice {
    name: String,
    query: String,
    on: bool,
}

#[derive(Template)]
#[template(path = "rules.html")]
struct All {
    frame: Frame,
    choices: Vec<Choice>,
    lines: Vec<Line>,
    count: usize,
    query: String,
    only_hit: bool,
    tenant: String,
    project: String,
}

/// `GET /rules`.
pub(super) async fn all(State(admin): State<Arc<Admin>>, who: Who, Query(given): Given) -> Response {
    let given = match Parameters::checked(given, &["q", "hit", "tenant", "project"]) {
        Ok(given) => given,
        Err(refusal) => return *refusal,
    };
    let text = |name: &str| given.text(name).unwrap_or_default().to_owned();
    let (query, tenant, project, only_hit) = (text("q"), text("tenant"), text("project"), given.text("hit").is_some());
    let rules = admin.proxy.rules();
    let table = table(&rules, &tenant, &project);
    let lines = table.rules().iter().enumerate().map(|(at, rule)| line(&admin, at + 1, rule));
    let needle = query.to_lowercase();
    let fits = |line: &Line| {
        let holds = |text: &str| text.to_lowercase().contains(&needle);
        (!only_hit || line.hits > 0) && (holds(&line.id) || holds(&line.signature) || holds(&line.note))
    };
    let view = All {
        frame: Frame::new((&admin, &who), "Rules", "/rules", admin.clock.now()),
        choices: choices(&rules, &tenant, &project),
        count: table.rules().len(),
        lines: lines.filter(fits).collect(),
        query,
        only_hit,
        tenant,
        project,
    };
    show(StatusCode::OK, &view)
}

/// The table of a tenant or project; everybody's where it has none of its own.
fn table<'a>(rules: &'a RuleSet, tenant: &str, project: &str) -> &'a Table {
    let of_project = rules.projects.get(&(Arc::from(tenant), Arc::from(project)));
    of_project.or_else(|| rules.tenants.get(tenant)).unwrap_or(&rules.base)
}

fn choices(rules: &RuleSet, tenant: &str, project: &str) -> Vec<Choice> {
    let choice = |name: String, of: (&str, &str)| Choice {
        name,
        query: format!("?tenant={}&project={}", part(of.0), part(of.1)),
        on: of == (tenant, project),
    };
    let mut own: Vec<Choice> = rules
        .tenants
        .keys()
        .map(|of| choice(format!("tenant {of}"), (of, "")))
        .chain(rules.projects.keys().map(|(of, project)| choice(format!("project {of}/{project}"), (of, project))))
        .collect();
    own.sort_by(|one, other| one.name.cmp(&other.name));
    std::iter::once(choice("everybody".to_owned(), ("", ""))).chain(own).collect()
}

fn line(admin: &Admin, number: usize, rule: &Rule) -> Line {
    let then = &rule.then;
    let cooldown = match &then.cooldown {
        Cooldown::Default => "by class".to_owned(),
        Cooldown::Fixed(length) => duration_text(*length),
        Cooldown::Hint => "hint".to_owned(),
        Cooldown::Header(name) => format!("header {name}"),
    };
    Line {
        number,
        id: rule.id.to_string(),
        place: rule.origin.to_string(),
        pill: Pill::new(then.classification.as_str()),
        signature: then.signature.to_string(),
        action: then.health_action.to_string(),
        cooldown,
        note: then.note.as_deref().unwrap_or_default().to_owned(),
        hits: admin.telemetry.rule_hits(&rule.id),
        locked: rule.locked,
    }
}
