//! `toolvane integrations` and `toolvane manifest`: what backs tools, and what a caller sees of them.

use std::io::Write;

use serde_json::Value;

use super::FINE;
use super::args::{Form, Integrations, Manifest};
use super::ask::{Access, AskError, escaped};
use super::table::table;

/// Asks for all integrations.
pub(super) async fn integrations(args: &Integrations, out: &mut impl Write) -> Result<u8, AskError> {
    print(&args.access, "/v1/integrations", integration_table, out).await
}

/// Asks what a caller sees.
pub(super) async fn manifest(args: &Manifest, out: &mut impl Write) -> Result<u8, AskError> {
    let named = [
        ("backend", &args.backend),
        ("session", &args.session),
        ("user", &args.user),
        ("project", &args.project),
        ("tenant", &args.tenant),
        ("roles", &args.roles),
        ("profile", &args.profile),
    ];
    let given = named.iter().filter_map(|(name, value)| Some(format!("{name}={}", escaped(value.as_deref()?))));
    let query: Vec<String> = given.collect();
    print(&args.access, &format!("/v1/manifest?{}", query.join("&")), manifest_table, out).await
}

async fn print(
    access: &Access,
    path: &str,
    as_table: impl Fn(&Value) -> String,
    out: &mut impl Write,
) -> Result<u8, AskError> {
    let answer = access.ask("GET", path, None).await?;
    let data = match access.output {
        Form::Json => format!("{answer:#}\n"),
        Form::Table => as_table(&answer),
    };
    let _ = out.write_all(data.as_bytes());
    Ok(FINE)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn each(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn integration_table(answer: &Value) -> String {
    let row = |one: &Value| {
        let mut tools: Vec<String> = each(&one["tools"]).map(|tool| text(&tool["tool"])).collect();
        if tools.is_empty() {
            tools = each(&one["patterns"]).map(text).collect();
        }
        let next = if one["hasProbe"] == true { text(&one["nextProbeAt"]) } else { "no probe".to_owned() };
        [text(&one["id"]), text(&one["state"]), text(&one["since"]), next, text(&one["detail"]), tools.join(", ")]
    };
    let rows: Vec<_> = each(&answer["integrations"]).map(row).collect();
    table(["INTEGRATION", "STATE", "SINCE", "NEXT PROBE", "LAST PROBE", "TOOLS"], &rows)
}

fn manifest_table(answer: &Value) -> String {
    let row = |one: &Value| {
        let listed = if one["listed"] == true { "yes" } else { "no" };
        let unchecked: Vec<String> = each(&one["unchecked"]).map(text).collect();
        let unchecked =
            if unchecked.is_empty() { String::new() } else { format!("unchecked: {}", unchecked.join(", ")) };
        let step = Some(text(&one["setupStep"])).filter(|step| !step.is_empty()).unwrap_or(unchecked);
        let why = Some(text(&one["statusReason"])).filter(|why| !why.is_empty());
        let why = why.unwrap_or_else(|| text(&one["annotation"]).trim().to_owned());
        [
            text(&one["backend"]),
            text(&one["tool"]),
            listed.to_owned(),
            text(&one["status"]),
            why,
            text(&one["integration"]),
            step,
        ]
    };
    let rows: Vec<_> = each(&answer["tools"]).map(row).collect();
    table(["BACKEND", "TOOL", "LISTED", "STATUS", "WHY", "INTEGRATION", "SETUP STEP"], &rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_integration_is_a_line_with_what_it_unlocks() {
        let answer = json!({"integrations": [
            {"id": "gmail", "state": "auth_failed", "since": "2026-03-02T14:02:00.000Z", "hasProbe": true, "detail": "HTTP 401",
             "nextProbeAt": "2026-03-02T14:07:00.000Z", "tools": [{"tool": "gmail_search"}], "patterns": ["gmail_*"]},
            {"id": "tavily", "state": "credentials_missing", "since": null, "hasProbe": false, "detail": null,
             "nextProbeAt": null, "tools": [], "patterns": ["tavily_*"]},
        ]});
        insta::assert_snapshot!(integration_table(&answer), @r"
        INTEGRATION  STATE                SINCE                     NEXT PROBE                LAST PROBE  TOOLS
        gmail        auth_failed          2026-03-02T14:02:00.000Z  2026-03-02T14:07:00.000Z  HTTP 401    gmail_search
        tavily       credentials_missing  -                         no probe                  -           tavily_*
        ");
    }

    #[test]
    fn a_tool_is_a_line_that_says_why_it_is_not_listed() {
        let answer = json!({"tools": [
            {"backend": "b", "tool": "a", "listed": true, "status": "OK", "statusReason": null, "annotation": null,
             "integration": null, "unchecked": ["X"], "setupStep": null},
            {"backend": "b", "tool": "mail", "listed": false, "status": "unavailable", "statusReason": "credentials_missing",
             "annotation": null, "integration": "gmail", "unchecked": [], "setupStep": "Sign in."},
        ]});
        insta::assert_snapshot!(manifest_table(&answer), @r"
        BACKEND  TOOL  LISTED  STATUS       WHY                  INTEGRATION  SETUP STEP
        b        a     yes     OK           -                    -            unchecked: X
        b        mail  no      unavailable  credentials_missing  gmail        Sign in.
        ");
    }
}
