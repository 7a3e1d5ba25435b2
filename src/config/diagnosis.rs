//! Who finds out what unclear failures mean, with what tools are tried, and who is notified (DESIGN 12 to 14).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::admin::{SecretSource, secret};
use super::headers::{SecretHeaders, secret_headers};
use crate::rules::Scope;
use crate::yaml::{At, Fields, Node, Value};

/// Who diagnoses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// The engine.
    pub engine: EngineKind,
    /// Jobs that may wait at the same time.
    pub queue: usize,
    /// The widest scope that an engine may write.
    pub widest: Scope,
}

/// An engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// Nobody: unclear failures are counted, and nothing is asked.
    Off,
    /// Somebody who leases jobs through the admin API.
    External,
    /// toolvane itself, by trying tools that are SAFE_PROBE.
    Builtin,
    /// An engine that is posted jobs.
    Webhook(Receiver),
    /// A language model.
    Llm(Model),
}

/// Who is posted something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// The address.
    pub url: Arc<str>,
    /// What bodies are signed with.
    pub secret: Option<SecretSource>,
}

/// How a language model is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// The base of an OpenAI-compatible API.
    pub url: Arc<str>,
    /// The model's name.
    pub model: Arc<str>,
    /// The key of the API.
    pub key: Option<SecretSource>,
}

/// In whose name tools are tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probes {
    /// toolvane's own credentials; none tries without.
    pub system: SecretHeaders,
    /// Those of users.
    pub users: BTreeMap<Arc<str>, SecretHeaders>,
}

pub(super) fn diagnosis(f: &Fields<'_>, directory: &Path) -> Diagnosis {
    let words = [
        ("off", Word::Off),
        ("external", Word::External),
        ("builtin", Word::Builtin),
        ("webhook", Word::Webhook),
        ("llm", Word::Llm),
    ];
    let scopes =
        [("USER", Scope::User), ("PROJECT", Scope::Project), ("TENANT", Scope::Tenant), ("GLOBAL", Scope::Global)];
    let word = f.word("engine", ENGINE, Word::Builtin, &words);
    let webhook = f.opt("webhook", "The engine of `engine: webhook`.", |at| receiver(at, directory));
    let llm = f.opt("llm", "The model of `engine: llm`.", |at| model(at, directory));
    let engine = match (word, webhook, llm) {
        (Word::Off, ..) => EngineKind::Off,
        (Word::External, ..) => EngineKind::External,
        (Word::Builtin, ..) => EngineKind::Builtin,
        (Word::Webhook, Some(receiver), _) => EngineKind::Webhook(receiver),
        (Word::Llm, _, Some(model)) => EngineKind::Llm(model),
        (Word::Webhook | Word::Llm, ..) => {
            let missing = if word == Word::Webhook { "webhook" } else { "llm" };
            if !f.has(missing) {
                f.fail::<()>("engine", format!("`engine: {missing}` needs the section `{missing}`"), |problem| problem);
            }
            EngineKind::Off
        }
    };
    let queue = f.count("queue", "Jobs that may wait at the same time.", 1_000, 1..=100_000);
    let widest = f.word("widest", "The widest scope that an engine's answer may write.", Scope::Project, &scopes);
    Diagnosis { engine, queue, widest }
}

#[derive(Clone, Copy, PartialEq)]
enum Word {
    Off,
    External,
    Builtin,
    Webhook,
    Llm,
}

const ENGINE: &str = "Who finds out what an unclear failure means: nobody (`off`), whoever leases jobs through the admin API \
    (`external`), toolvane by trying tools that are SAFE_PROBE (`builtin`), an engine over HTTP (`webhook`), or a language \
    model (`llm`).";

/// The receiver of notifications, if there is one.
pub(super) fn notify(f: &Fields<'_>, directory: &Path) -> Option<Receiver> {
    f.opt("webhook", "Where notifications are posted.", |at| receiver(at, directory))
}

fn receiver(at: At<'_>, directory: &Path) -> Option<Receiver> {
    at.map(|f| {
        let url = f.need("url", "The address.", url);
        let secret = f.opt("secret", "What bodies are signed with (HMAC-SHA256).", |at| secret(at, directory));
        Some(Receiver { url: url?, secret })
    })?
}

fn model(at: At<'_>, directory: &Path) -> Option<Model> {
    at.map(|f| {
        let url = f.need("url", "The base of an OpenAI-compatible API, such as `https://api.openai.com/v1`.", url);
        let model = f.need("model", "The model's name.", |at| at.line(128));
        let key = f.opt("key", "The key of the API.", |at| secret(at, directory));
        Some(Model { url: url?, model: model?, key })
    })?
}

pub(super) fn url(at: At<'_>) -> Option<Arc<str>> {
    at.parse("an address such as `https://engine.example/jobs`", "^https?://[^@\\s]+$", |text| {
        let scheme = text.starts_with("http://") || text.starts_with("https://");
        let fits = scheme && !text.contains('@') && text.len() <= 2_048 && text.parse::<http::Uri>().is_ok();
        if fits { Ok(Arc::from(text)) } else { Err(String::new()) }
    })
}

pub(super) fn probes(f: &Fields<'_>, directory: &Path) -> Probes {
    let users = f.opt("users", "Headers of tries as single users, by user.", |at| {
        at.entries(|_, at| secret_headers(at, directory))
    });
    Probes {
        system: f
            .opt("system", "Headers of tries as the system.", |at| secret_headers(at, directory))
            .unwrap_or_default(),
        users: users.unwrap_or_default().into_iter().collect(),
    }
}

/// The sample input of a tool: any map.
pub(super) fn sample(at: At<'_>) -> Option<Arc<Map<String, Json>>> {
    at.any(|| serde_json::json!({"type": "object"}));
    match json(at.node()?) {
        Json::Object(members) => Some(Arc::new(members)),
        _ => at.wrong("a map of arguments"),
    }
}

fn json(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(value) => Json::from(*value),
        Value::Float(value) => Json::from(*value),
        Value::Text(text) => Json::from(&**text),
        Value::List(items) => items.iter().map(|item| json(item)).collect(),
        Value::Map(entries) => {
            Json::Object(entries.iter().map(|entry| (entry.key.to_string(), json(&entry.value))).collect())
        }
    }
}
