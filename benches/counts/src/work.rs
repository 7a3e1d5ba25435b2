//! The parts of a call that are counted.

use std::future::Future as _;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context as Polling, Poll, Waker};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use http::{Method, Request};
use toolvane::clock::{Clock, Now, Tick, Wall};
use toolvane::config::Config;
use toolvane::health::{
    Call, Caller, Declared, Key, Mark, MemoryOnly, Origin, Policy, Readiness, Registry, Status, ToolRef, Tuning,
    Unready,
};
use toolvane::mcp::answer::{EXCERPT_LIMIT, Reader, Seen, glance};
use toolvane::mcp::list::{self, Edit, ListEdit};
use toolvane::mcp::{Format, request};
use toolvane::proxy::net::{Body, ConnInfo};
use toolvane::proxy::{Parts, Proxy, RuleSet};
use toolvane::rules::{Answer, BackendKind, Classification, Exchange, Limits, Scope, TEXT_BOUND, Table, Verdict, load};
use toolvane::telemetry::{self, Telemetry};
use toolvane::yaml::Source;

/// One piece of work, done again with each call.
type Work = Box<dyn FnMut()>;

/// What the gate counts.
pub const NAMES: &[&str] = &[
    "parse a request of 500 B",
    "parse a request of 8 KiB",
    "cascade read",
    "gate, looked up",
    "gate, as it stood before",
    "record a success, looked up",
    "record a success, as it stood before",
    "record a failure",
    "observe a success of 1 KiB, at a glance",
    "observe a success of 64 KiB, at a glance",
    "observe a failure of 1 KiB",
    "observe 64 KiB in pieces",
    "observe 20 events",
    "classify a success",
    "classify a tool error",
    "classify a 503, 1,000 rules",
    "classify a tool error of 2 KiB, 1,000 rules",
    "classify a 403 of 2 KiB, 1,000 rules",
    "classify a tool error of 64 KiB, 1,000 rules",
    "classify a 500 of 64 KiB, 1,000 rules",
    "classify 64 KiB of a, 1,000 rules",
    "classify deep JSON, 1,000 rules",
    "classify open brackets, 1,000 rules",
    "classify 6,000 entries, 1,000 rules",
    "classify 10,000 entries cut off, 1,000 rules",
    "classify 64 KiB of tags, 1,000 rules",
    "classify 64 KiB of rate limits, 1,000 rules",
    "list of 200 tools, untouched",
    "list of 200 tools, 20 annotated",
    "short-circuit, from request to answer",
];

/// What a part may take at most, whatever its baseline: a classification is to take microseconds with a thousand rules.
pub const MOST: &[(&str, u64)] = &[
    ("classify a success", 600),
    ("classify a tool error of 2 KiB, 1,000 rules", 150_000),
    ("classify a 403 of 2 KiB, 1,000 rules", 150_000),
    ("classify a tool error of 64 KiB, 1,000 rules", 2_000_000),
    ("classify a 500 of 64 KiB, 1,000 rules", 2_000_000),
];

/// What somebody may send in order to cost much takes at most so many times as much as [`USUAL`] does.
pub const HOSTILE_MAX: u64 = 10;
/// A usual failure of the size that the hostile ones have.
pub const USUAL: &str = "classify a tool error of 64 KiB, 1,000 rules";
/// What somebody may send in order to cost much.
pub const HOSTILE: &[&str] = &[
    "classify 64 KiB of a, 1,000 rules",
    "classify deep JSON, 1,000 rules",
    "classify open brackets, 1,000 rules",
    "classify 6,000 entries, 1,000 rules",
    "classify 10,000 entries cut off, 1,000 rules",
    "classify 64 KiB of tags, 1,000 rules",
    "classify 64 KiB of rate limits, 1,000 rules",
];

const NOW: Now = Now { tick: Tick(1_000_000), wall: Wall(1_790_000_000_000) };

/// Where counting begins and ends.
#[inline(never)]
pub fn counted_section(work: &mut dyn FnMut()) {
    work();
}

/// Does the named work so many times.
pub fn run(name: &str, times: usize) -> Result<()> {
    let mut work = prepare(name)?;
    // Twice before: what is set up at the first uses does not count.
    work();
    work();
    counted_section(&mut || (0..times).for_each(|_| work()));
    Ok(())
}

/// How many allocations the named work takes, once.
pub fn allocations(name: &str) -> Result<u64> {
    let mut work = prepare(name)?;
    work();
    work();
    Ok(allocation_counter::measure(work).count_total)
}

fn prepare(name: &str) -> Result<Work> {
    if let Some((curve, number)) = name.split_once(" = ") {
        return growing(curve, number.parse().context("a number of things")?);
    }
    Ok(match name {
        "parse a request of 500 B" => parse(350),
        "parse a request of 8 KiB" => parse(8_000),
        "cascade read" => {
            let (registry, caller, at) = believed(2_000);
            Box::new(move || drop(black_box(registry.lookup(&caller, &at, NOW))))
        }
        "gate, looked up" => {
            let ((registry, caller, at), policy) = (believed(2_000), policy());
            Box::new(move || drop(black_box(registry.admit(&caller, &at, &policy, NOW))))
        }
        "gate, as it stood before" => {
            let (registry, caller, at) = believed(2_000);
            success(&registry, &Arc::new(caller.clone()), &at, &Arc::new(policy()));
            let footing = registry.footing(&caller, &at).context("nothing is held against the tool")?;
            Box::new(move || assert!(black_box(registry.still(&footing))))
        }
        "record a success, looked up" => {
            let (registry, caller, at) = believed(2_000);
            let (caller, policy) = (Arc::new(caller), Arc::new(policy()));
            Box::new(move || success(&registry, &caller, &at, &policy))
        }
        "record a success, as it stood before" => {
            let (registry, caller, at) = believed(2_000);
            let (caller, policy) = (Arc::new(caller), Arc::new(policy()));
            success(&registry, &caller, &at, &policy);
            let footing = registry.footing(&caller, &at).context("nothing is held against the tool")?;
            Box::new(move || {
                let call = call(&caller, &at, &policy);
                assert!(black_box(registry.record_success(&footing, call, NOW)).is_ok());
            })
        }
        "record a failure" => failure()?,
        "observe a success of 1 KiB, at a glance" => look(&result(1_000, false)),
        "observe a success of 64 KiB, at a glance" => look(&result(64 * 1024, false)),
        "observe a failure of 1 KiB" => observe(Format::Json, result(1_000, true)),
        "observe 64 KiB in pieces" => observe(Format::Json, result(64 * 1024, false)),
        "observe 20 events" => observe(Format::EventStream, events()),
        "classify a success" => classify(0, succeeded(false, String::new()))?,
        "classify a tool error" => classify(0, tool_error())?,
        "classify a 503, 1,000 rules" => classify(
            1_000,
            Exchange { status: Some(503), text: "the server is busy, come back".into(), ..Exchange::default() },
        )?,
        "classify a tool error of 2 KiB, 1,000 rules" => classify(1_000, unknown(2_048))?,
        "classify a 403 of 2 KiB, 1,000 rules" => classify(1_000, refused(403, 2_048))?,
        "classify a tool error of 64 KiB, 1,000 rules" => classify(1_000, unknown(TEXT_BOUND))?,
        "classify a 500 of 64 KiB, 1,000 rules" => classify(1_000, refused(500, TEXT_BOUND - 500))?,
        "classify 64 KiB of a, 1,000 rules" => classify(1_000, succeeded(true, "a".repeat(TEXT_BOUND)))?,
        "classify deep JSON, 1,000 rules" => {
            classify(1_000, body(500, format!("{}{}", "[".repeat(120), "]".repeat(120))))?
        }
        "classify open brackets, 1,000 rules" => classify(1_000, succeeded(true, "[{\"a\":".repeat(10_900)))?,
        "classify 6,000 entries, 1,000 rules" => classify(1_000, body(500, entries(6_000)))?,
        "classify 10,000 entries cut off, 1,000 rules" => {
            classify(1_000, body(500, entries(10_000).chars().take(TEXT_BOUND).collect()))?
        }
        "classify 64 KiB of tags, 1,000 rules" => classify(1_000, succeeded(true, "<a>".repeat(21_800)))?,
        "classify 64 KiB of rate limits, 1,000 rules" => {
            classify(1_000, succeeded(true, "rate limit token expired timeout ".repeat(1_980)))?
        }
        "list of 200 tools, untouched" => rewrite(200, 0),
        "list of 200 tools, 20 annotated" => rewrite(200, 20),
        "short-circuit, from request to answer" => short_circuit()?,
        _ => bail!("nothing is called {name:?}; there are {NAMES:?}"),
    })
}

/// The work of one point of a curve: see `growth`.
fn growing(curve: &str, number: usize) -> Result<Work> {
    Ok(match curve {
        "documents" => {
            let (registry, caller, at) = believed(number);
            let (caller, policy) = (Arc::new(caller), Arc::new(policy()));
            Box::new(move || {
                drop(black_box(registry.admit(&caller, &at, &policy, NOW)));
                success(&registry, &caller, &at, &policy);
            })
        }
        "rules, success" => classify(number, succeeded(false, String::new()))?,
        "rules, failure" => classify(number, tool_error())?,
        "tools" => {
            let telemetry = telemetry(number);
            let (registry, caller, _) = believed(10);
            let (caller, policy) = (Arc::new(caller), Arc::new(policy()));
            let named: Vec<ToolRef> = (0..number).map(|n| tool(&format!("tool_{n}"))).collect();
            for at in &named {
                telemetry.tool("demo", &at.tool);
                success(&registry, &caller, at, &policy);
            }
            let mut next = 0;
            Box::new(move || {
                next = (next + 1) % named.len();
                let at = &named[next];
                black_box(telemetry.labelled("demo", &at.tool));
                drop(black_box(registry.admit(&caller, at, &policy, NOW)));
                success(&registry, &caller, at, &policy);
            })
        }
        "users" => {
            let (registry, caller, at) = believed(10);
            let policy = Arc::new(policy());
            let user = |n: usize| Arc::new(Caller { user: Some(format!("user {n}").into()), ..caller.clone() });
            let users: Vec<Arc<Caller>> = (0..number).map(user).collect();
            users.iter().for_each(|user| success(&registry, user, &at, &policy));
            let mut next = 0;
            Box::new(move || {
                next = (next + 1) % users.len();
                drop(black_box(registry.admit(&users[next], &at, &policy, NOW)));
                success(&registry, &users[next], &at, &policy);
            })
        }
        "tools in a list" => rewrite(number, 0),
        _ => bail!("no curve is called {curve:?}"),
    })
}

fn parse(filler: usize) -> Work {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"jira_search","arguments":{{"query":"{}","limit":10}}}}}}"#,
        "x".repeat(filler)
    );
    Box::new(move || drop(black_box(request::parse(black_box(body.as_bytes())))))
}

fn caller() -> Caller {
    Caller {
        session: Some("s-1".into()),
        user: Some("alice".into()),
        project: "default".into(),
        tenant: "default".into(),
        roles: Vec::new(),
        credential: None,
    }
}

fn tool(name: &str) -> ToolRef {
    ToolRef { backend: "demo".into(), tool: name.into() }
}

fn policy() -> Policy {
    Policy { trial_lease: Duration::from_secs(30), ..Policy::default() }
}

/// A registry with so many documents that are not OK, none of them the caller's.
fn believed(documents: usize) -> (Registry, Caller, ToolRef) {
    let tuning = Tuning { documents_max: Tuning::default().documents_max.max(2 * documents), ..Tuning::default() };
    let registry = Registry::new(tuning, Arc::new(MemoryOnly));
    for n in 0..documents {
        registry.mark(&key(&format!("user-{n}"), &format!("tool_{}", n % 100)), &down(), NOW, &mut || 0.5);
    }
    (registry, caller(), tool("tool_1"))
}

fn key(user: &str, tool: &str) -> Key {
    Key {
        tenant_id: Some("default".into()),
        scope: Scope::User,
        scope_id: Some(user.into()),
        backend: "demo".into(),
        tool_name: tool.into(),
    }
}

fn down() -> Mark {
    Mark {
        to: Status::Down,
        classification: Classification::TechnicallyBroken,
        signature: Some("http-503".into()),
        origin: Origin::Admin,
        by: "counts".into(),
        note: "because".into(),
        since: None,
        recovery: Some(Duration::from_secs(3_600)),
        user_action_hint: None,
    }
}

fn call(caller: &Arc<Caller>, at: &ToolRef, policy: &Arc<Policy>) -> Call {
    Call {
        caller: Arc::clone(caller),
        at: at.clone(),
        policy: Arc::clone(policy),
        started: NOW,
        permit: None,
        target: None,
        duration: None,
    }
}

fn success(registry: &Registry, caller: &Arc<Caller>, at: &ToolRef, policy: &Arc<Policy>) {
    drop(black_box(registry.record(call(caller, at, policy), &Verdict::SUCCESS, NOW, &mut || 0.5)));
}

fn failure() -> Result<Work> {
    let (registry, caller, at) = believed(2_000);
    let (caller, policy) = (Arc::new(caller), Arc::new(policy()));
    let verdict = table(0)?.judge(&tool_error());
    Ok(Box::new(move || {
        drop(black_box(registry.record(call(&caller, &at, &policy), &verdict, NOW, &mut || 0.5)));
    }))
}

fn result(size: usize, is_error: bool) -> Vec<u8> {
    let text = "the quick brown fox jumps over the lazy dog and says so; ".repeat(size / 57);
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{text}"}}],"isError":{is_error}}}}}"#
    )
    .into_bytes()
}

fn events() -> Vec<u8> {
    let progress = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":1,\"total\":20}}\n\n";
    let answer = String::from_utf8_lossy(&result(300, false)).into_owned();
    format!("{}event: message\ndata: {answer}\n\n", progress.repeat(19)).into_bytes()
}

fn look(message: &[u8]) -> Work {
    let message = message.to_vec();
    Box::new(move || assert!(black_box(glance(black_box(&message))).is_some()))
}

fn observe(format: Format, body: Vec<u8>) -> Work {
    Box::new(move || {
        let mut reader = Reader::new(format, EXCERPT_LIMIT);
        let mut seen = 0;
        let mut see = |item: Seen| seen += usize::from(matches!(black_box(item), Seen::Answer(_)));
        for chunk in body.chunks(8 * 1024) {
            reader.push(chunk, &mut see);
        }
        reader.finish(see);
        assert_eq!(seen, 1);
    })
}

fn succeeded(is_error: bool, text: String) -> Exchange {
    let answer = Answer::Result { is_error, result_type: None, task_started: false, structured: None };
    Exchange { answer, text, status: Some(200), ..Exchange::default() }
}

fn tool_error() -> Exchange {
    succeeded(true, "something that no rule knows. ".repeat(20))
}

/// A tool error of such a size that no rule knows.
fn unknown(bytes: usize) -> Exchange {
    succeeded(true, "something that no rule knows. ".repeat(bytes / 30))
}

fn body(status: u16, body: String) -> Exchange {
    let mut exchange = Exchange { kind: BackendKind::Http, status: Some(status), ..Exchange::default() };
    exchange.take_body(body);
    exchange
}

/// What an HTTP tool answers in JSON, of such a size and with a code that no rule knows.
fn refused(status: u16, bytes: usize) -> Exchange {
    let filler = "the quick brown fox jumps over the lazy dog. ".repeat(bytes / 45);
    body(status, format!("{{\"error\": {{\"message\": \"{filler}\", \"code\": \"unheard_of\"}}}}"))
}

/// A list of so many errors.
fn entries(number: usize) -> String {
    format!("[{}]", vec!["{\"code\":\"unheard_of\",\"message\":\"no\"}"; number].join(","))
}

/// The bundled table with so many rules of somebody's own.
fn table(rules: usize) -> Result<Table> {
    let mut text = String::from("patterns:\n");
    for n in 0..rules {
        text.push_str(&format!(
            "  - {{id: r{n}, match: {{httpStatus: {}, bodyContains: ['needle number {n} of many']}}, signature: s{}, classification: USER_INPUT}}\n",
            400 + n % 200,
            n % 50
        ));
    }
    let layers: Vec<_> = (rules > 0).then(|| Arc::new(Source::new("own.yaml", text))).into_iter().collect();
    load(&layers, Limits::default()).map_err(|report| anyhow!("{report}"))
}

fn classify(rules: usize, exchange: Exchange) -> Result<Work> {
    let table = table(rules)?;
    Ok(Box::new(move || drop(black_box(table.judge(black_box(&exchange))))))
}

fn rewrite(tools: usize, annotated: usize) -> Work {
    let words = "Searches the index of the project and gives the documents that fit best. ".repeat(4);
    let tools: Vec<String> = (0..tools)
        .map(|n| format!(r#"{{"name":"tool_{n}","description":"{words}","inputSchema":{{"type":"object","properties":{{"query":{{"type":"string"}}}}}}}}"#))
        .collect();
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{}]}}}}"#, tools.join(","));
    Box::new(move || {
        let mut left = annotated;
        let edited = list::rewrite(body.as_bytes(), Format::Json, ListEdit::default(), |_| {
            let Some(fewer) = left.checked_sub(1) else { return Edit::Keep };
            left = fewer;
            Edit::Annotate { description: Some(" [unavailable since 14:02 UTC]".to_owned()), health: None }
        });
        drop(black_box(edited));
    })
}

fn telemetry(tools_max: usize) -> Telemetry {
    Telemetry::new(&telemetry::Settings { version: "1".to_owned(), revision: "counts".to_owned(), tools_max })
}

/// A clock that stands still.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Now {
        NOW
    }
}

/// Nothing has to be set up.
#[derive(Debug)]
struct AllSetUp;

impl Readiness for AllSetUp {
    fn unready(&self, _: &ToolRef, _: Option<&Declared>, _: Now) -> Option<Unready> {
        None
    }

    fn is_backed(&self, _: &ToolRef, _: Option<&Declared>) -> bool {
        false
    }

    fn integration(&self, _: &ToolRef, _: Option<&Declared>) -> Option<Arc<str>> {
        None
    }

    fn unchecked(&self, _: &ToolRef, _: Option<&Declared>) -> Vec<Arc<str>> {
        Vec::new()
    }
}

/// A call of a tool that is DOWN, through the whole proxy: no backend is asked, so all of it happens at once.
fn short_circuit() -> Result<Work> {
    let text = "listen: 127.0.0.1:0\nbackends:\n  - {name: demo, kind: mcp, url: http://127.0.0.1:9/mcp}\n";
    let source = Arc::new(Source::new("toolvane.yaml", text.to_owned()));
    let config = Config::read(&source, std::path::Path::new("/")).map_err(|report| anyhow!("{report}"))?;
    let registry = Arc::new(Registry::new(Tuning::default(), Arc::new(MemoryOnly)));
    registry.mark(&key("alice", "tool_1"), &down(), NOW, &mut || 0.5);
    let telemetry = Arc::new(telemetry(100));
    telemetry.tool("demo", "tool_1");
    let proxy = Proxy::new(Parts {
        config: Arc::new(config),
        clock: Arc::new(Still),
        registry,
        readiness: Arc::new(AllSetUp),
        rules: RuleSet::of(table(0)?),
        telemetry,
        key: [7; 32],
        random: Box::new(|| 0.5),
    });
    let body =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool_1","arguments":{"query":"rain"}}}"#;
    let conn = ConnInfo::without_connection(([127, 0, 0, 1], 9).into());
    Ok(Box::new(move || {
        let mut request = Request::new(Body::full(body.as_bytes()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = http::Uri::from_static("/mcp");
        request.headers_mut().insert("x-user-id", http::HeaderValue::from_static("alice"));
        request.headers_mut().insert("mcp-session-id", http::HeaderValue::from_static("s-1"));
        let mut answering = pin!(proxy.handle(request, conn.clone()));
        match answering.as_mut().poll(&mut Polling::from_waker(Waker::noop())) {
            Poll::Ready(answer) => assert!(black_box(answer).headers().contains_key("x-toolvane")),
            Poll::Pending => panic!("the call is not answered at once"),
        }
    }))
}
