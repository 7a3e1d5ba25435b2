//! The tools: what a model reads of them, the role that each takes, and the function of `/v1` in which each ends.

use std::sync::Arc;

use axum::response::Response;
use rmcp::model::ToolAnnotations;
use schemars::Schema;

use super::super::body::{Clear, Cooldown, Refusal, Statement};
use super::super::health::{answer, backend_of, document, effective};
use super::super::principal::Principal;
use super::super::write::{self, Target, finish};
use super::super::{Admin, diagnosis};
use super::arguments::{
    Arguments, As, Candidate, Cooled, Forgotten, Nothing, Place, Recovery, Seen, Whose, joined, part, rest, schema,
};
use crate::config::Role;
use crate::health::{ProbeAs, Status, ToolRef};

/// One tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    /// Who may call it; nobody else sees it.
    pub(super) role: Role,
    about: &'static str,
    /// The parts of its arguments.
    takes: &'static [fn() -> Schema],
    act: Act,
}

/// What a tool does.
enum Act {
    Read,
    Lookup,
    SetUnavailable,
    SetAvailable,
    SetCooldown,
    ClearCooldown,
    Clear,
    ProbeAsUser,
    ProbeAsSystem,
}

/// All of them (DESIGN 14).
pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "tool_health_read",
        role: Role::Reader,
        about: "Reads the health document of one tool at one scope: status, since when, why, cooldowns, history, the last \
            diagnosis, and its `version`. An error `no such document` means that nothing is held there, which reads as OK.",
        takes: &[schema::<Place>],
        act: Act::Read,
    },
    Tool {
        name: "tool_health_lookup",
        role: Role::Reader,
        about: "Tells how a tool stands for one caller: the narrowest document that is not OK among those of the session, the \
            user, the project, the tenant and everybody. Ask this first: it says at which scope the trouble is.",
        takes: &[schema::<Whose>],
        act: Act::Lookup,
    },
    Tool {
        name: "tool_health_set_unavailable",
        role: Role::HealthWriter,
        about: "Sets a tool DOWN at one scope: calls of those concerned are answered at once, without asking the backend. Say \
            why (`reason`) and until when (`expiresIn` such as `15m`, or `expectedRecoveryAt`, a day ahead at most). Only for \
            tools that cannot work: a caller's missing permission or wrong arguments are no outage.",
        takes: &[schema::<Place>, schema::<Seen>, schema::<Statement>],
        act: Act::SetUnavailable,
    },
    Tool {
        name: "tool_health_set_available",
        role: Role::HealthWriter,
        about: "Sets a tool OK at one scope: calls pass again. Say why (`reason`).",
        takes: &[schema::<Place>, schema::<Seen>, schema::<Recovery>],
        act: Act::SetAvailable,
    },
    Tool {
        name: "tool_health_set_cooldown",
        role: Role::HealthWriter,
        about: "Says how long failures of one kind start no new diagnosis. It blocks no call. An existing cooldown of that kind \
            gets the new deadline.",
        takes: &[schema::<Place>, schema::<Seen>, schema::<Cooldown>],
        act: Act::SetCooldown,
    },
    Tool {
        name: "tool_health_clear_cooldown",
        role: Role::HealthWriter,
        about: "Removes cooldowns and leaves the status alone: the next failure of such a kind is diagnosed anew.",
        takes: &[schema::<Place>, schema::<Seen>, schema::<Cooled>],
        act: Act::ClearCooldown,
    },
    Tool {
        name: "tool_health_clear",
        role: Role::HealthWriter,
        about: "Sets a tool OK at one scope and removes all its cooldowns there.",
        takes: &[schema::<Place>, schema::<Seen>, schema::<Forgotten>],
        act: Act::Clear,
    },
    Tool {
        name: "tool_probe_as_user",
        role: Role::Prober,
        about: "Calls a SAFE_PROBE tool once with its sample input and the credentials that are configured for this user. If it \
            works, the next real call of that user passes. Compare with tool_probe_as_system: fails for the user and works for \
            the system is that user's own trouble.",
        takes: &[schema::<Candidate>, schema::<As>],
        act: Act::ProbeAsUser,
    },
    Tool {
        name: "tool_probe_as_system",
        role: Role::Prober,
        about: "Calls a SAFE_PROBE tool once with its sample input and the credentials of the system. If it works, the next real \
            call passes.",
        takes: &[schema::<Candidate>, schema::<Nothing>],
        act: Act::ProbeAsSystem,
    },
];

impl Tool {
    /// As a list of tools shows it.
    pub(super) fn listed(&self) -> rmcp::model::Tool {
        let reads = matches!(self.act, Act::Read | Act::Lookup);
        let probes = matches!(self.act, Act::ProbeAsUser | Act::ProbeAsSystem);
        let hints = ToolAnnotations::new().read_only(reads).destructive(!reads && !probes).open_world(probes);
        rmcp::model::Tool::new(self.name, self.about, Arc::new(joined(self.takes))).with_annotations(hints)
    }

    /// Does it, and answers as the request under `/v1` would be answered.
    pub(super) async fn run(&self, admin: &Admin, who: &Principal, arguments: Arguments) -> Response {
        match self.act {
            Act::Read => answer(|| document(admin, &of_only::<Place, Nothing>(arguments)?.0.named()?)),
            Act::Lookup => answer(|| effective(admin, rest::<Whose>(arguments)?.parameters())),
            Act::SetUnavailable => {
                let said = aimed::<Statement>(arguments);
                finish(said.and_then(|(at, said)| write::status(admin, who, &at, (Status::Down, &said)))).await
            }
            Act::SetAvailable => {
                let said = aimed::<Recovery>(arguments);
                finish(said.and_then(|(at, said)| write::status(admin, who, &at, (Status::Ok, &said.into())))).await
            }
            Act::SetCooldown => {
                let said = aimed::<Cooldown>(arguments);
                finish(said.and_then(|(at, said)| write::cooldown(admin, who, &at, &said))).await
            }
            Act::ClearCooldown => {
                let said = aimed::<Cooled>(arguments);
                finish(said.and_then(|(at, said)| write::removal(admin, who, &at, &Clear::from(said)))).await
            }
            Act::Clear => {
                let said = aimed::<Forgotten>(arguments);
                finish(said.and_then(|(at, said)| write::removal(admin, who, &at, &Clear::from(said)))).await
            }
            Act::ProbeAsUser => {
                let said = of_only::<Candidate, As>(arguments);
                probe(admin, said.map(|(what, user)| (what, ProbeAs::User(Arc::from(user.user))))).await
            }
            Act::ProbeAsSystem => {
                let said = of_only::<Candidate, Nothing>(arguments);
                probe(admin, said.map(|(what, Nothing {})| (what, ProbeAs::System))).await
            }
        }
    }
}

type Parsed<T> = Result<T, Refusal>;

/// Arguments of two parts.
fn of_only<A, B>(mut arguments: Arguments) -> Parsed<(A, B)>
where
    A: serde::de::DeserializeOwned + schemars::JsonSchema,
    B: serde::de::DeserializeOwned,
{
    Ok((part(&mut arguments)?, rest(arguments)?))
}

/// The arguments of a write: where, and what.
fn aimed<T: serde::de::DeserializeOwned>(mut arguments: Arguments) -> Parsed<(Target, T)> {
    let named = part::<Place>(&mut arguments)?.named()?;
    let expected = part::<Seen>(&mut arguments)?.version;
    Ok((Target { named, expected }, rest(arguments)?))
}

async fn probe(admin: &Admin, said: Parsed<(Candidate, ProbeAs)>) -> Response {
    let aimed = said.and_then(|(what, who)| {
        let backend = backend_of(admin, what.backend.as_deref(), &what.tool)?;
        Ok((ToolRef { backend, tool: Arc::from(what.tool) }, who))
    });
    match aimed {
        Ok((at, who)) => diagnosis::tried(admin, &at, &who).await,
        Err(refusal) => *refusal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_reads_refers_to_nothing_that_it_does_not_have() {
        for tool in TOOLS {
            let text = serde_json::to_string(&tool.listed()).unwrap();
            assert!(!text.contains("DESIGN") && !text.contains("STATE "), "{text}");
        }
    }
}
