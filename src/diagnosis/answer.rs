//! What an engine may say about a job (DESIGN 13), read strictly: what does not fit is malformed, and says why.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::{Now, Wall};
use crate::rules::{Classification, Scope};

/// The longest note or hint, in bytes.
const WORDS_MAX: usize = 512;
/// Adjustments of one answer.
const ADJUSTMENTS_MAX: usize = 16;
/// The furthest that any time may lie ahead.
const AHEAD_MAX: Duration = Duration::from_secs(24 * 3600);

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// What was found: every class but UNCLEAR.
    pub classification: Classification,
    /// Who is affected; left out, the scope that goes with the class.
    #[serde(default)]
    pub scope: Option<Scope>,
    /// When it is estimated to be back, 24 h ahead at most; null where nobody knows.
    #[serde(default)]
    pub expected_recovery_at: Option<Wall>,
    /// What was found, in words.
    pub human_note: String,
    /// What the user concerned can do.
    #[serde(default)]
    pub user_action_hint: Option<String>,
    /// Deadlines of cooldowns that are to differ from the usual ones.
    #[serde(default)]
    pub cooldown_adjustments: Vec<Adjustment>,
}

/// The deadline of one cooldown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Adjustment {
    /// The kind of failure.
    pub error_signature: String,
    /// Whose; null is scope-wide.
    #[serde(default)]
    pub user_id: Option<String>,
    /// Until when, 24 h ahead at most.
    pub next_spawn_allowed_at: Wall,
}

impl Answer {
    /// Reads an answer that may be anything.
    ///
    /// # Errors
    /// Why it cannot be used, in words for the note.
    pub fn read(text: &[u8], widest: Scope, now: Now) -> Result<Answer, String> {
        let value: Value = serde_json::from_slice(text).map_err(|_| "it is not JSON".to_owned())?;
        Answer::of_value(value, widest, now)
    }

    /// The same for what is JSON already.
    ///
    /// # Errors
    /// As for [`Answer::read`].
    pub fn of_value(value: Value, widest: Scope, now: Now) -> Result<Answer, String> {
        if !value.is_object() {
            return Err("it is no JSON object".to_owned());
        }
        let answer: Answer = crate::json::of_value(value).map_err(|error| error.to_string())?;
        answer.checked(widest, now)
    }

    fn checked(mut self, widest: Scope, now: Now) -> Result<Answer, String> {
        if self.classification == Classification::Unclear {
            return Err("UNCLEAR is no finding".to_owned());
        }
        if let Some(scope) = self.scope.filter(|scope| *scope > widest) {
            return Err(format!("{scope} is wider than {widest}, the widest that an engine may write"));
        }
        let broken = matches!(
            self.classification,
            Classification::TechnicallyBroken | Classification::UserSpecificTechnical | Classification::Intermittent
        );
        if let Some(at) = self.expected_recovery_at {
            if !broken {
                return Err(format!("{} has no recovery to wait for", self.classification));
            }
            ahead("expectedRecoveryAt", at, now)?;
        }
        self.human_note = cut(&self.human_note).to_owned();
        if self.human_note.is_empty() {
            return Err("`humanNote` is empty".to_owned());
        }
        self.user_action_hint = self.user_action_hint.map(|hint| cut(&hint).to_owned()).filter(|hint| !hint.is_empty());
        if self.cooldown_adjustments.len() > ADJUSTMENTS_MAX {
            return Err(format!("more than {ADJUSTMENTS_MAX} adjustments"));
        }
        for adjustment in &self.cooldown_adjustments {
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            let signature = &adjustment.error_signature;
            if signature.is_empty() || signature.len() > 64 || !signature.chars().all(fits) {
                return Err("an `errorSignature` is at most 64 letters, digits, `-`, `_` and `.`".to_owned());
            }
            ahead("nextSpawnAllowedAt", adjustment.next_spawn_allowed_at, now)?;
        }
        Ok(self)
    }
}

fn ahead(name: &str, at: Wall, now: Now) -> Result<(), String> {
    let ahead = at.0.saturating_sub(now.wall.0);
    let longest = i64::try_from(AHEAD_MAX.as_millis()).unwrap_or(i64::MAX);
    if (1..=longest).contains(&ahead) { Ok(()) } else { Err(format!("`{name}` is not within the next 24 h")) }
}

fn cut(text: &str) -> &str {
    let text = text.trim();
    let mut end = text.len().min(WORDS_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Tick;

    const NOW: Now = Now { tick: Tick(0), wall: Wall(1_772_460_120_000) };

    /// 2026-03-02T14:02:00Z is now.
    const MALFORMED: [(&str, &str); 22] = [
        ("", "not JSON"),
        ("I could not find anything wrong.", "not JSON"),
        ("{\"classification\": \"TECHNICALLY_BROKEN\", \"humanNote\":", "not JSON"),
        ("```json\n{\"classification\": \"WORKING\", \"humanNote\": \"fine\"}\n```", "not JSON"),
        ("[]", "no JSON object"),
        ("null", "no JSON object"),
        ("\"TECHNICALLY_BROKEN\"", "no JSON object"),
        ("{}", "missing field"),
        (r#"{"classification": "TECHNICALLY_BROKEN"}"#, "missing field"),
        (r#"{"humanNote": "broken"}"#, "missing field"),
        (r#"{"classification": "BROKEN", "humanNote": "x"}"#, "unknown variant"),
        (r#"{"classification": "technically_broken", "humanNote": "x"}"#, "unknown variant"),
        (r#"{"classification": ["WORKING"], "humanNote": "x"}"#, "invalid type"),
        (r#"{"classification": "UNCLEAR", "humanNote": "x"}"#, "no finding"),
        (r#"{"classification": "WORKING", "humanNote": "  "}"#, "is empty"),
        (r#"{"classification": "WORKING", "humanNote": 7}"#, "invalid type"),
        (r#"{"classification": "TECHNICALLY_BROKEN", "humanNote": "x", "scope": "GLOBAL"}"#, "wider than PROJECT"),
        (r#"{"classification": "TECHNICALLY_BROKEN", "humanNote": "x", "scope": "EVERYBODY"}"#, "unknown variant"),
        (r#"{"classification": "INTERMITTENT", "humanNote": "x", "expectedRecoveryAt": "soon"}"#, ""),
        (
            r#"{"classification": "INTERMITTENT", "humanNote": "x", "expectedRecoveryAt": "2026-03-02T14:01:59Z"}"#,
            "next 24 h",
        ),
        (
            r#"{"classification": "INTERMITTENT", "humanNote": "x", "expectedRecoveryAt": "2026-04-02T14:00:00Z"}"#,
            "next 24 h",
        ),
        (
            r#"{"classification": "WORKING", "humanNote": "x", "cooldownAdjustments": [
                {"errorSignature": "my own words", "nextSpawnAllowedAt": "2026-03-02T15:00:00Z"}]}"#,
            "errorSignature",
        ),
    ];

    #[test]
    fn a_malformed_answer_is_refused_with_the_reason() {
        for (text, words) in MALFORMED {
            let error = Answer::read(text.as_bytes(), Scope::Project, NOW).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_well_formed_answer_is_read_whole_and_more_than_that_is_ignored() {
        let text = r#"{"classification": "USER_SPECIFIC_TECHNICAL", "scope": "USER", "humanNote": " token expired ",
            "userActionHint": "Sign in again.", "expectedRecoveryAt": "2026-03-02T15:00:00Z", "confidence": 0.9,
            "cooldownAdjustments": [{"errorSignature": "http-401", "userId": "alice",
            "nextSpawnAllowedAt": "2026-03-02T20:00:00Z"}]}"#;
        let answer = Answer::read(text.as_bytes(), Scope::Project, NOW).unwrap();
        assert_eq!(answer.human_note, "token expired");
        assert_eq!(answer.cooldown_adjustments.len(), 1);
        let long = format!(r#"{{"classification": "WORKING", "humanNote": "{}"}}"#, "é".repeat(600));
        assert_eq!(Answer::read(long.as_bytes(), Scope::Project, NOW).unwrap().human_note.len(), 512);
    }
}
