//! The parts of a call that are counted, each often enough that chance (the seeds of hash maps) averages out.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use toolvane::clock::{Now, Tick, Wall};
use toolvane::health::{Call, Caller, Key, Mark, MemoryOnly, Origin, Policy, Registry, Status, ToolRef, Tuning};
use toolvane::mcp::answer::{EXCERPT_LIMIT, Reader};
use toolvane::mcp::list::{self, Edit, ListEdit};
use toolvane::mcp::{Format, request};
use toolvane::rules::{Answer, Classification, Exchange, Limits, Scope, Verdict, load};
use toolvane::yaml::Source;

/// What is counted.
pub const NAMES: &[&str] = &[
    "parse 500 B",
    "parse 8 KiB",
    "cascade read",
    "gate",
    "record success",
    "observe 1 KiB",
    "observe 64 KiB",
    "observe 20 events",
    "classify success",
    "classify tool error",
    "classify 503, 1,000 rules",
    "list 200 tools, untouched",
    "list 200 tools, 20 annotated",
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
    // Once before: what is set up at the first use does not count.
    work();
    counted_section(&mut || (0..times).for_each(|_| work()));
    Ok(())
}

fn prepare(name: &str) -> Result<Box<dyn FnMut()>> {
    Ok(match name {
        "parse 500 B" => parse(350),
        "parse 8 KiB" => parse(8_000),
        "cascade read" => {
            let (registry, caller, at) = believed();
            Box::new(move || drop(black_box(registry.lookup(&caller, &at, NOW))))
        }
        "gate" => {
            let ((registry, caller, at), policy) = (believed(), policy());
            Box::new(move || drop(black_box(registry.admit(&caller, &at, &policy, NOW))))
        }
        "record success" => record(),
        "observe 1 KiB" => observe(Format::Json, result(1_000)),
        "observe 64 KiB" => observe(Format::Json, result(64 * 1024)),
        "observe 20 events" => observe(Format::EventStream, events()),
        "classify success" => classify(0, succeeded(false, String::new()))?,
        "classify tool error" => classify(0, succeeded(true, "something that no rule knows. ".repeat(20)))?,
        "classify 503, 1,000 rules" => classify(
            1_000,
            Exchange { status: Some(503), text: "the server is busy, come back".into(), ..Exchange::default() },
        )?,
        "list 200 tools, untouched" => rewrite(0),
        "list 200 tools, 20 annotated" => rewrite(20),
        _ => bail!("nothing is called {name:?}; there are {NAMES:?}"),
    })
}

fn parse(filler: usize) -> Box<dyn FnMut()> {
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

fn policy() -> Policy {
    Policy { trial_lease: Duration::from_secs(30), ..Policy::default() }
}

/// A registry with 2,000 documents that are not OK, none of them the caller's.
fn believed() -> (Registry, Caller, ToolRef) {
    let registry = Registry::new(Tuning::default(), Arc::new(MemoryOnly));
    let mark = Mark {
        to: Status::Down,
        classification: Classification::TechnicallyBroken,
        signature: Some("http-503".into()),
        origin: Origin::Admin,
        by: "counts".into(),
        note: "because".into(),
        recovery: Some(Duration::from_secs(3_600)),
        user_action_hint: None,
    };
    for n in 0..2_000 {
        let key = Key {
            tenant_id: Some("default".into()),
            scope: Scope::User,
            scope_id: Some(format!("user-{n}")),
            backend: "demo".into(),
            tool_name: format!("tool_{}", n % 100),
        };
        registry.mark(&key, &mark, NOW, &mut || 0.5);
    }
    (registry, caller(), ToolRef { backend: "demo".into(), tool: "tool_1".into() })
}

fn record() -> Box<dyn FnMut()> {
    let (registry, caller, at) = believed();
    let (caller, policy) = (Arc::new(caller), Arc::new(policy()));
    Box::new(move || {
        let call = Call {
            caller: Arc::clone(&caller),
            at: at.clone(),
            policy: Arc::clone(&policy),
            started: NOW,
            permit: None,
            target: None,
            duration: None,
        };
        drop(black_box(registry.record(call, &Verdict::SUCCESS, NOW, &mut || 0.5)));
    })
}

fn result(size: usize) -> Vec<u8> {
    let text = "the quick brown fox jumps over the lazy dog and says so; ".repeat(size / 57);
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{text}"}}],"isError":false}}}}"#)
        .into_bytes()
}

fn events() -> Vec<u8> {
    let progress = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":1,\"total\":20}}\n\n";
    let answer = String::from_utf8_lossy(&result(300)).into_owned();
    format!("{}event: message\ndata: {answer}\n\n", progress.repeat(19)).into_bytes()
}

fn observe(format: Format, body: Vec<u8>) -> Box<dyn FnMut()> {
    Box::new(move || {
        let mut reader = Reader::new(format, EXCERPT_LIMIT);
        let mut seen = 0;
        for chunk in body.chunks(8 * 1024) {
            reader.push(chunk, |item| seen += usize::from(black_box(item).is_answer()));
        }
        reader.finish(|item| seen += usize::from(black_box(item).is_answer()));
        assert_eq!(seen, 1);
    })
}

fn succeeded(is_error: bool, text: String) -> Exchange {
    let answer = Answer::Result { is_error, result_type: None, task_started: false, structured: None };
    Exchange { answer, text, status: Some(200), ..Exchange::default() }
}

fn classify(rules: usize, exchange: Exchange) -> Result<Box<dyn FnMut()>> {
    let mut text = String::from("patterns:\n");
    for n in 0..rules {
        text.push_str(&format!(
            "  - {{id: r{n}, match: {{httpStatus: {}, bodyContains: ['needle number {n} of many']}}, signature: s{}, classification: USER_INPUT}}\n",
            400 + n % 200,
            n % 50
        ));
    }
    let layers: Vec<_> = (rules > 0).then(|| Arc::new(Source::new("own.yaml", text))).into_iter().collect();
    let table = load(&layers, Limits::default()).map_err(|report| anyhow!("{report}"))?;
    Ok(Box::new(move || drop(black_box(table.judge(black_box(&exchange))))))
}

fn rewrite(annotated: usize) -> Box<dyn FnMut()> {
    let words = "Searches the index of the project and gives the documents that fit best. ".repeat(4);
    let tools: Vec<String> = (0..200)
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

/// Whether something that was seen is an answer.
trait IsAnswer {
    fn is_answer(&self) -> bool;
}

impl IsAnswer for toolvane::mcp::answer::Seen {
    fn is_answer(&self) -> bool {
        matches!(self, toolvane::mcp::answer::Seen::Answer(_))
    }
}
