//! Reads what a rule says when it matches.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;

use crate::rules::hint::{HINT_LIMIT, HINT_MIN};
use crate::rules::rule::{Cooldown, Rule, Then};
use crate::rules::vocabulary::{Classification, DispatchCode, HealthAction, Scope};
use crate::yaml::{At, Fields, Value, parse_duration};

/// The longest id or signature, in bytes.
const NAME_MAX: usize = 64;
/// The longest note, in bytes.
const NOTE_MAX: usize = 512;
/// The longest cooldown; the configuration may set less.
const COOLDOWN_MAX: Duration = Duration::from_secs(24 * 3600);

pub(super) const CLASSIFICATIONS: [(&str, Classification); 7] = [
    ("TECHNICALLY_BROKEN", Classification::TechnicallyBroken),
    ("USER_SPECIFIC_TECHNICAL", Classification::UserSpecificTechnical),
    ("USER_PERMISSION", Classification::UserPermission),
    ("USER_INPUT", Classification::UserInput),
    ("INTERMITTENT", Classification::Intermittent),
    ("WORKING", Classification::Working),
    ("UNCLEAR", Classification::Unclear),
];
pub(super) const ACTIONS: [(&str, HealthAction); 3] = [
    ("none", HealthAction::None),
    ("markUnavailable", HealthAction::MarkUnavailable),
    ("markDegraded", HealthAction::MarkDegraded),
];
pub(super) const SCOPES: [(&str, Scope); 5] = [
    ("SESSION", Scope::Session),
    ("USER", Scope::User),
    ("PROJECT", Scope::Project),
    ("TENANT", Scope::Tenant),
    ("GLOBAL", Scope::Global),
];
pub(super) const CODES: [(&str, DispatchCode); 4] = [
    ("NOT_REGISTERED", DispatchCode::NotRegistered),
    ("BACKEND_UNREACHABLE", DispatchCode::BackendUnreachable),
    ("BACKEND_FAILED", DispatchCode::BackendFailed),
    ("DISALLOWED", DispatchCode::Disallowed),
];

/// Reads the keys beside `match`; `id` stands in for a signature that is left out, as in older tables.
pub(super) fn then(fields: &Fields<'_>, id: Option<&Arc<str>>) -> Option<Then> {
    let signature = fields.opt("signature", "short stable name of this kind of failure; `id` if left out", name);
    let classification =
        fields.need("classification", "what the failure says about the tool", |at| at.word(&CLASSIFICATIONS));
    let cooldown = fields.opt("cooldown", "a duration, `hint` for the answer's own hint, or `header:<name>`", cooldown);
    let hint_max =
        fields.opt("hintMax", "how far a hint may reach, 24 h at most", |at| at.duration(HINT_MIN..=HINT_LIMIT));
    let health_action = fields.word("healthAction", "what it does to the status at once", HealthAction::None, &ACTIONS);
    let scope = fields.opt("scope", "who is affected, where the default does not fit", |at| at.word(&SCOPES));
    let dispatch_code = fields.opt("dispatchCode", "how the failure is named to the caller", |at| at.word(&CODES));
    let neutral =
        fields.flag("neutral", "the answer is the protocol's, not the tool's: it neither trips nor clears", false);
    let answer =
        fields.word("answer", "what the caller sees of a 5xx or 429", false, &[("pass", false), ("result", true)]);
    let note = fields.opt("note", "shown in history", |at| at.line(NOTE_MAX));
    Some(Then {
        signature: signature.or_else(|| id.cloned())?,
        classification: classification?,
        cooldown: cooldown.unwrap_or_default(),
        hint_max,
        health_action,
        scope,
        dispatch_code,
        neutral,
        answer_as_result: answer,
        note,
    })
}

/// An id or signature: it ends up in metrics, files and answers, so it holds nothing that needs escaping.
pub(super) fn name(at: At<'_>) -> Option<Arc<str>> {
    at.parse("a name such as `http-403`", "^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$", |text| {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-');
        if text.len() > NAME_MAX {
            return Err(format!("it has {} bytes, at most {NAME_MAX} are allowed", text.len()));
        }
        if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) || !text.chars().all(fits) {
            return Err("letters, digits, `.`, `_`, `:` and `-` are allowed".to_owned());
        }
        Ok(Arc::from(text))
    })
}

fn cooldown(at: At<'_>) -> Option<Cooldown> {
    if let Some(Value::Int(_)) = at.value() {
        return at.duration(HINT_MIN..=COOLDOWN_MAX).map(Cooldown::Fixed);
    }
    let what = "a duration such as `30s` or `PT24H`, `hint`, or `header:<name>`";
    at.parse(what, "^(hint|header: *[!-~]+|P.+|[0-9].*)$", |text| match (text, text.strip_prefix("header:")) {
        ("hint", _) => Ok(Cooldown::Hint),
        (_, Some(header)) => match HeaderName::try_from(header.trim()) {
            Ok(name) => Ok(Cooldown::Header(name)),
            Err(_) => Err("the name of a header field follows `header:`".to_owned()),
        },
        _ => match parse_duration(text) {
            Some(wait) if (HINT_MIN..=COOLDOWN_MAX).contains(&wait) => Ok(Cooldown::Fixed(wait)),
            Some(_) => Err("1s to 24h is allowed".to_owned()),
            None => Err(String::new()),
        },
    })
}

/// USER_PERMISSION and USER_INPUT never lead to a status (DESIGN 7), nor does a success.
pub(super) fn sound(fields: &Fields<'_>, rule: &Rule) -> bool {
    use Classification as C;
    let then = &rule.then;
    let marks = then.health_action != HealthAction::None;
    if marks && matches!(then.classification, C::UserPermission | C::UserInput | C::Working) {
        let message = format!("{} never changes a status, so `healthAction` must be `none`", then.classification);
        fields.fail::<()>("healthAction", message, |problem| {
            problem.help("leave `healthAction` out, or choose the classification that the failure deserves")
        });
        return false;
    }
    if marks && then.neutral {
        fields.fail::<()>("neutral", "a rule that is `neutral` cannot change a status at once", |problem| {
            problem.help("leave out `neutral` or `healthAction`")
        });
        return false;
    }
    true
}
