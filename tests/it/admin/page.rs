//! The status page over HTTP: every view answers, shows what there is, escapes what comes from outside, and runs nothing but
//! our own script; and signing in with a browser.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde_json::{Value, json};

use super::server::Server;
use super::support::{Answer, OPERATOR, Process, READER, START, WRITER, backend, backend_answer, home};
use toolvane::clock::Clock;

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
/// A tool whose name would do harm, in a path.
const HOSTILE: &str = "%3Cscript%3Ealert%281%29%3C%2Fscript%3E";
const VIEWS: [&str; 8] =
    ["/", "/tools/demo/a", "/integrations", "/rules", "/explain", "/events", "/config", "/?q=%3Cscript%3E&status=DOWN"];

async fn open(process: &Process, path: &str) -> Answer {
    process.raw("GET", path, &[("host", "localhost")], &Value::Null).await
}

async fn send(process: &Process, path: &str, headers: &[(&str, &str)], form: &str) -> Answer {
    let headers = [&[("host", "localhost"), FORM], headers].concat();
    process.raw("POST", path, &headers, &Value::String(form.to_owned())).await
}

/// A backend with a list, of which every tool answers as those of [`backend`] do.
async fn listing(tools: &[&'static str]) -> std::net::SocketAddr {
    let tools: Vec<Value> = tools.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect();
    Server::start(move |seen| {
        let id = &seen.body["id"];
        let answer = match seen.body["method"].as_str() {
            Some("tools/list") => json!({"jsonrpc": "2.0", "id": id, "result": {"tools": tools}}),
            _ => backend_answer(&seen.body),
        };
        axum::Json(answer).into_response()
    })
    .await
    .address
}

async fn mark(process: &Process, tool: &str, to: &str, reason: &str) {
    let body = json!({"reason": reason, "expiresIn": "15m"});
    let body = if to == "available" { json!({"reason": reason}) } else { body };
    let answer = process.ask("POST", &format!("/v1/health/PROJECT/default/{tool}/{to}"), WRITER, &body).await;
    assert!(answer.status.is_success(), "{}", answer.text);
}

/// What holds of every answer that a browser shows.
fn harmless(path: &str, answer: &Answer) {
    assert!(answer.header("content-type").starts_with("text/html"), "{path}: {:?}", answer.headers);
    let policy = answer.header("content-security-policy");
    for rule in
        ["default-src 'none'", "script-src 'self'", "style-src 'self'", "base-uri 'none'", "frame-ancestors 'none'"]
    {
        assert!(policy.contains(rule), "{path}: {policy}");
    }
    assert!(!policy.contains("unsafe"), "{path}: {policy}");
    for foreign in ["<script>", "<img", "src=\"http", "href=\"http", "url(", " style=", "<style", "javascript:"] {
        assert!(!answer.text.contains(foreign), "{path}: {foreign} in {}", answer.text);
    }
    let handler = answer.text.split_whitespace().find(|word| word.starts_with("on") && word.contains("=\""));
    assert_eq!(handler, None, "{path}");
    assert!(answer.text.starts_with("<!doctype html>") && answer.text.trim_end().ends_with("</html>"), "{path}");
}

#[tokio::test]
async fn every_view_answers_and_what_comes_from_outside_is_text_and_nothing_else() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    mark(&process, "a", "unavailable", "\"><img src=x onerror=alert(1)>").await;
    mark(&process, HOSTILE, "unavailable", "</td><script>alert(2)</script>").await;
    for path in VIEWS {
        let answer = open(&process, path).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.text);
        harmless(path, &answer);
    }
    let tools = open(&process, "/").await.text;
    assert!(tools.contains("&#60;script&#62;alert(1)&#60;/script&#62;</a>"), "{tools}");
    assert!(tools.contains(&format!("href=\"/tools/demo/{HOSTILE}\"")), "{tools}");
    let one = open(&process, &format!("/tools/demo/{HOSTILE}")).await;
    assert_eq!(one.status, StatusCode::OK);
    harmless("a hostile tool", &one);
    assert!(one.text.contains("&#60;/td&#62;&#60;script&#62;alert(2)"), "{}", one.text);
    mark(&process, "*", "unavailable", "the whole backend").await;
    for unknown in ["/tools/demo/never", "/tools/nowhere/a"] {
        let answer = open(&process, unknown).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{unknown}");
        harmless(unknown, &answer);
        assert!(answer.text.contains("names the tool"), "{}", answer.text);
    }
    assert_eq!(open(&process, "/?colour=red").await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn the_views_say_what_is_believed_and_why() {
    let home = home();
    let more = "integrations: {mail: {credentials_required: [{env: NOT_SET_ANYWHERE}], setup_hint: \"ask ops\"}}\n";
    let process = Process::start(home.path(), backend().await, "", more).await;
    process.call("broken_one", "alice").await;
    mark(&process, "a", "unavailable", "the disk is full").await;
    let decision = json!({
        "tool": "b", "scope": "PROJECT", "scopeId": "default", "force": "DOWN", "reason": "moving house", "expiresIn": "1h",
    });
    process.ask("POST", "/v1/override", OPERATOR, &decision).await;
    let shows = async |path: &str, words: &[&str]| {
        let text = open(&process, path).await.text;
        for word in words {
            assert!(text.contains(word), "{path} does not say {word:?}: {text}");
        }
    };
    shows("/", &["the disk is full", ">DOWN<", "override: DOWN", "<b>2</b>", "in 15 min"]).await;
    shows("/?status=OK", &["No tool fits"]).await;
    shows("/tools/demo/a", &["the disk is full", "TECHNICALLY_BROKEN", "engine", "toolvane status a", "Next trial"])
        .await;
    shows("/tools/demo/b", &["Overridden by <b>ops</b>: moving house"]).await;
    shows("/tools/demo/broken_one", &["Cooldowns", "rpc-32603"]).await;
    shows("/rules?hit=1", &["<b>1</b>", "error-patterns.yaml"]).await;
    shows("/integrations", &["credentials_missing", "NOT_SET_ANYWHERE", "ask ops"]).await;
    shows("/events", &["transition", "audit", "the disk is full"]).await;
    shows("/events?kind=override", &["moving house"]).await;
    shows("/config", &["moving house", "backends:", "none since the start"]).await;
}

#[tokio::test]
async fn a_tool_that_nobody_is_shown_does_not_pass_for_one_that_works() {
    let home = home();
    let missing = "integrations: {mail: {credentials_required: [{env: NOT_SET_ANYWHERE}]}}\n\
                   tools: {mail_send: {integration: mail}}\n";
    let process = Process::start(home.path(), listing(&["mail_send", "tea"]).await, "", missing).await;
    process.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}), "alice").await;
    let overview = process.get("/v1/overview").await;
    let facts = |at: usize| ["tool", "listed", "statusReason"].map(|name| overview["tools"][at][name].clone());
    assert_eq!(facts(0), [json!("mail_send"), json!(false), json!("credentials_missing")]);
    assert_eq!(facts(1), [json!("tea"), json!(true), Value::Null]);
    let tools = process.get("/v1/tools?tool=mail_send").await;
    assert_eq!(tools["tools"][0]["listed"], false);
    let page = open(&process, "/").await.text;
    let row = page.split("data-key=\"demo/mail_send\"").nth(1).unwrap().split("</tr>").next().unwrap();
    let status = row.split("</td>").next().unwrap();
    assert!(status.contains(">HIDDEN<") && status.contains("credentials missing"), "{row}");
    assert!(!row.contains(">OK<"), "{row}");
    let only = open(&process, "/?status=HIDDEN").await.text;
    assert!(only.contains("demo/mail_send") && !only.contains("demo/tea"), "{only}");
    assert!(open(&process, "/tools/demo/mail_send").await.text.contains(">HIDDEN<"));

    mark(&process, "mail_send", "unavailable", "the relay is gone").await;
    let page = open(&process, "/").await.text;
    let row = page.split("data-key=\"demo/mail_send\"").nth(1).unwrap().split("</tr>").next().unwrap();
    let status = row.split("</td>").next().unwrap();
    assert!(status.contains(">DOWN<") && status.contains("hidden: credentials missing"), "{row}");
}

#[tokio::test]
async fn calls_of_tools_that_no_list_names_are_counted_in_one_row() {
    let home = home();
    let process = Process::start(home.path(), listing(&["tea"]).await, "", "").await;
    process.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}), "alice").await;
    process.get("/v1/overview").await;
    for tool in ["tea", "unlisted_one", "unlisted_two", "broken_unlisted"] {
        process.call(tool, "alice").await;
    }
    let overview = process.get("/v1/overview").await;
    let rows: Vec<&Value> = overview["tools"].as_array().unwrap().iter().map(|row| &row["callsPerMinute"]).collect();
    assert_eq!(rows, [&json!(1.0)], "a row for each tool of the list: {overview}");
    let others = &overview["others"][0];
    assert_eq!((&others["backend"], &others["callsPerMinute"]), (&json!("demo"), &json!(3.0)));
    assert!((others["failedShare"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-9, "{others}");
    let page = open(&process, "/").await.text;
    let row = page.split("data-key=\"demo\"").nth(1).unwrap_or_else(|| panic!("{page}")).split("</tr>").next().unwrap();
    assert!(row.contains("other tools") && row.contains(">3.0<") && row.contains("33 %"), "{row}");
}

#[tokio::test]
async fn the_form_explains_an_outcome_and_says_what_is_wrong_with_one() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    let answer = send(&process, "/explain", &[], "status=403&body=%3Cscript%3Eno%3C%2Fscript%3E&kind=http").await;
    assert_eq!(answer.status, StatusCode::OK);
    harmless("/explain", &answer);
    for words in ["http-403", "USER_PERMISSION", "earlier rules", "&#60;script&#62;no"] {
        assert!(answer.text.contains(words), "{words}: {}", answer.text);
    }
    for (form, words) in [
        ("", "say what came"),
        ("status=7", "from 100 to 999"),
        ("headers=x&status=500", "no field"),
        ("exception=dns&status=503", "there is no such outcome"),
    ] {
        let answer = send(&process, "/explain", &[], form).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{form}");
        assert!(answer.text.contains(words), "{form}: {}", answer.text);
    }
    assert!(process.audited().await.is_empty(), "to explain is no write");
}

#[tokio::test]
async fn a_browser_signs_in_with_a_token_reads_with_its_cookie_and_writes_nothing_with_it() {
    let home = home();
    let process = Process::start_at(START, "0.0.0.0:0", home.path(), backend().await, ("", "")).await;
    mark(&process, "secret_tool", "unavailable", "x").await;
    let stranger = open(&process, "/rules?q=a").await;
    assert_eq!(stranger.status, StatusCode::UNAUTHORIZED);
    harmless("the form to sign in", &stranger);
    assert!(stranger.text.contains("name=\"next\" value=\"/rules?q=a\"") && !stranger.text.contains("secret_tool"));
    assert_eq!(open(&process, "/page/style.css").await.status, StatusCode::OK, "the form is styled");
    assert_eq!(open(&process, "/v1/health").await.body["status"], 401);
    assert_eq!(send(&process, "/explain", &[], "status=500").await.status, StatusCode::UNAUTHORIZED);

    let wrong = send(&process, "/login", &[], "token=wrong-token-0123456789&next=/").await;
    assert_eq!((wrong.status, wrong.header("set-cookie")), (StatusCode::UNAUTHORIZED, ""));
    let foreign = send(&process, "/login", &[("origin", "http://evil.example")], &format!("token={READER}")).await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    let right = send(&process, "/login", &[], &format!("token={OPERATOR}&next=/rules?q=a")).await;
    assert_eq!((right.status, right.header("location")), (StatusCode::SEE_OTHER, "/rules?q=a"));
    let set = right.header("set-cookie").to_owned();
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Lax") && !set.contains(OPERATOR), "{set}");

    let cookie = set.split(';').next().unwrap();
    let headers = [("host", "localhost"), ("cookie", cookie)];
    let tools = process.raw("GET", "/", &headers, &Value::Null).await;
    assert_eq!(tools.status, StatusCode::OK);
    assert!(tools.text.contains("secret_tool") && tools.text.contains("Sign out"));
    assert_eq!(process.raw("GET", "/v1/health", &headers, &Value::Null).await.status, StatusCode::OK);
    assert_eq!(send(&process, "/explain", &[("cookie", cookie)], "status=500").await.status, StatusCode::OK);
    for path in ["/v1/drain", "/v1/reload", "/v1/health/PROJECT/default/secret_tool/available"] {
        let refused = process.raw("POST", path, &headers, &json!({"reason": "x"})).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path}: the cookie of an operator only reads");
    }
    let out = send(&process, "/logout", &[("cookie", cookie)], "").await;
    assert!(out.header("set-cookie").contains("Max-Age=0"), "{:?}", out.headers);
    let who: Vec<Value> =
        process.audited().await.iter().map(|told| json!([told["what"], told["who"], told["done"]])).collect();
    assert!(
        who.contains(&json!(["POST /login", "nobody", false])) && who.contains(&json!(["POST /login", "ops", true])),
        "{who:?}"
    );
}

#[tokio::test]
async fn the_files_of_the_page_are_known_by_what_they_hold() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    for (file, kind) in [("style.css", "text/css"), ("live.js", "text/javascript"), ("icon.svg", "image/svg+xml")] {
        let path = format!("/page/{file}");
        let answer = open(&process, &path).await;
        assert!(answer.header("content-type").starts_with(kind), "{file}: {:?}", answer.headers);
        let known = [("host", "localhost"), ("if-none-match", answer.header("etag"))];
        let again = process.raw("GET", &path, &known, &Value::Null).await;
        assert_eq!((again.status, again.text.as_str()), (StatusCode::NOT_MODIFIED, ""), "{file}");
    }
    assert_eq!(open(&process, "/page/other").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_overview_tells_of_the_last_day_also_after_a_restart() {
    let home = home();
    let minutes = |count: u64| Duration::from_secs(60 * count);
    let backend = backend().await;
    let mut process = Process::start(home.path(), backend, "", "").await;
    mark(&process, "a", "unavailable", "x").await;
    process.clock.advance(minutes(20));
    mark(&process, "a", "available", "x").await;
    process.clock.advance(minutes(15));
    let day = async |process: &Process| {
        let overview = process.get("/v1/overview").await;
        overview["tools"][0]["history"].as_str().unwrap().to_owned()
    };
    let history = day(&process).await;
    assert_eq!(history.len(), 288);
    assert!(history.ends_with("-DDDDDOOO"), "{history}");
    let now = process.clock.now();
    process.running.stop();
    process.running.ended().await;
    let again = Process::start_at(now, "127.0.0.1:0", home.path(), backend, ("", "")).await;
    assert!(day(&again).await.ends_with("DDDDDOOO"), "{}", day(&again).await);
}
