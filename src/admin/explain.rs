//! `POST /v1/explain`: which rule decides an exchange, which clause failed in each earlier one, and what follows.

use std::collections::BTreeMap;

use axum::Json as Answer;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use super::Admin;
use super::body::{Json, Refusal, unfit};
use super::health::caller_of;
use super::query::{Parameters, Query};
use super::routes::EXPLAIN;
use super::target::Shared;
use crate::health::{self, Caller, Explained};
use crate::rules::{Exchange, case};

/// Explains a case by the rules and settings in force, as if this caller had made the call: a user of whom nothing else is
/// known, if nobody is named.
pub(super) async fn explain(
    State(admin): Shared,
    Query(given): Query<BTreeMap<String, String>>,
    Json(said): Json<case::Raw>,
) -> Response {
    let explained = Parameters::checked(given, EXPLAIN).and_then(|given| {
        let exchange = exchange(&admin, said)?;
        let caller = caller_of(&given);
        let user = caller.user.clone().or(Caller::somebody().user);
        Ok(of(&admin, &exchange, &Caller { user, ..caller }))
    });
    match explained {
        Ok(explained) => Answer(explained).into_response(),
        Err(refusal) => *refusal,
    }
}

/// The exchange of a case.
fn exchange(admin: &Admin, said: case::Raw) -> Result<Exchange, Refusal> {
    let case = said.into_case(admin.clock.now()).map_err(|error| unfit(error.to_string()))?;
    Ok(known(admin, case.exchange))
}

/// An exchange with what the configuration and the backend's list say of its tool.
pub(super) fn known(admin: &Admin, mut exchange: Exchange) -> Exchange {
    let at = (&*exchange.backend, &*exchange.tool);
    exchange.listed |= admin.proxy.tools().iter().any(|(backend, tool)| (&**backend, tool.as_str()) == at);
    exchange.session_tool |= admin.config.tools.is_session_tool(&exchange.tool);
    exchange
}

/// The same for an exchange at hand.
pub(super) fn of(admin: &Admin, exchange: &Exchange, caller: &Caller) -> Explained {
    let policy = admin.config.tools.policy(&exchange.backend, &exchange.tool);
    let tuning = admin.config.tuning_of(&caller.tenant);
    health::explain(exchange, &admin.proxy.rules_of(caller), caller, &policy, &tuning)
}
