//! What a good file comes to, and that the files that come with the program are good.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::yaml::{Node, Value};

const SHORTEST: &str = "backends: [{name: demo, kind: mcp, url: 'http://127.0.0.1:9000/mcp'}]\n";

fn read(text: &str) -> Config {
    let source = Arc::new(Source::new("toolvane.yaml", text));
    Config::read(&source, Path::new("/etc/toolvane")).unwrap_or_else(|report| panic!("{report}"))
}

fn with(rest: &str) -> Config {
    read(&format!("{SHORTEST}{rest}"))
}

/// A YAML file as JSON, `None` if it is not one document without doubled keys.
pub(super) fn as_json(text: &str) -> Option<serde_json::Value> {
    fn json(node: &Node) -> serde_json::Value {
        match &node.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Int(value) => (*value).into(),
            Value::Float(value) => (*value).into(),
            Value::Text(value) => (**value).into(),
            Value::List(items) => items.iter().map(|item| json(item)).collect(),
            Value::Map(entries) => entries.iter().map(|entry| (entry.key.to_string(), json(&entry.value))).collect(),
        }
    }
    let source = Arc::new(Source::new("t.yaml", text));
    yaml::read(&source, |at| at.node().map(json)).ok()
}

/// A validator of JSON Schema that knows nothing of our reader.
pub(super) struct Judge {
    schemas: boon::Schemas,
    root: boon::SchemaIndex,
}

impl Judge {
    pub(super) fn new() -> Judge {
        let mut schemas = boon::Schemas::new();
        let mut compiler = boon::Compiler::new();
        compiler.add_resource(SCHEMA_ID, Config::schema()).unwrap();
        let root = compiler.compile(SCHEMA_ID, &mut schemas).unwrap();
        Judge { schemas, root }
    }

    pub(super) fn objections(&self, instance: &serde_json::Value) -> Option<String> {
        self.schemas.validate(instance, self.root).err().map(|error| error.to_string())
    }
}

fn shipped(name: &str) -> (PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config").join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    (path, text)
}

#[test]
fn the_shortest_file_has_the_defaults_of_the_contract() {
    let config = read(SHORTEST);
    assert_eq!(config.listen, ["127.0.0.1:8080".parse().unwrap()]);
    assert_eq!(config.admin, "127.0.0.1:9090".parse().unwrap());
    assert_eq!(config.tuning, Tuning::default());
    assert_eq!(config.hint_max, Duration::from_secs(3600));
    assert_eq!(config.store, Store::Redb("toolvane.redb".into()));
    assert_eq!((config.limits.body_peek, config.limits.list, config.limits.failure_text), (1 << 20, 8 << 20, 64 << 10));
    let backend = &config.backends[0];
    assert_eq!((backend.host, backend.http), (HostPolicy::Preserve, HttpVersion::Http1));
    assert_eq!(backend.timeouts.idle, Some(Duration::from_secs(3600)));
    assert_eq!(backend.forwarded, Forwarded::default());
    let policy = config.tools.policy("demo", "anything");
    assert_eq!(*policy, crate::health::Policy { has_targets: true, ..Default::default() });
    assert!(config.tools.policy("demo", "client_file_read").session_tool);
}

#[test]
fn the_file_with_every_key_says_the_defaults_and_names_every_key() {
    let (_, text) = shipped("toolvane.yaml");
    let (full, short) = (read(&text), read(SHORTEST));
    assert_eq!(full.backends[0], short.backends[0]);
    assert_eq!(full.listen, short.listen);
    assert_eq!((full.admin, &full.admin_access), (short.admin, &short.admin_access));
    assert_eq!((&full.diagnosis, &full.probes, &full.notify), (&short.diagnosis, &short.probes, &short.notify));
    assert_eq!(full.identity, short.identity);
    assert_eq!((full.manifest, full.limits, full.log), (short.manifest, short.limits, short.log));
    assert_eq!((full.tuning, full.hint_max, full.store), (short.tuning, short.hint_max, short.store));
    assert_eq!((full.drain_announce, full.drain_timeout), (short.drain_announce, short.drain_timeout));
    assert_eq!(full.metrics_tools_max, short.metrics_tools_max);
    let mut keys = Vec::new();
    collect_keys(&Config::schema(), &mut keys);
    assert!(keys.len() > 60, "{} keys", keys.len());
    for key in keys {
        assert!(text.contains(&format!("{key}:")), "`{key}` is not explained");
    }
}

fn collect_keys(schema: &serde_json::Value, keys: &mut Vec<String>) {
    if let Some(properties) = schema.get("properties").and_then(|properties| properties.as_object()) {
        for (key, value) in properties {
            keys.push(key.clone());
            collect_keys(value, keys);
        }
    }
    for key in ["items", "additionalProperties"] {
        schema.get(key).into_iter().for_each(|value| collect_keys(value, keys));
    }
}

#[test]
fn the_shipped_schema_is_that_of_the_reader() {
    let (_, text) = shipped("toolvane.schema.json");
    let committed: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(
        committed == Config::schema(),
        "the schema has changed: `cargo test --lib write_the_schema -- --ignored` writes it anew"
    );
}

#[test]
#[ignore = "writes config/toolvane.schema.json"]
fn write_the_schema() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/toolvane.schema.json");
    fs::write(path, serde_json::to_string_pretty(&Config::schema()).unwrap() + "\n").unwrap();
}

#[test]
fn every_shipped_configuration_is_good_for_reader_and_schema() {
    let judge = Judge::new();
    let mut seen = 0;
    for directory in ["config", "examples", "deploy"] {
        for path in yaml_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(directory)) {
            let text = fs::read_to_string(&path).unwrap();
            if !text.contains("toolvane.schema.json") {
                continue;
            }
            let source = Arc::new(Source::new(path.display().to_string(), text.as_str()));
            Config::read(&source, Path::new("")).unwrap_or_else(|report| panic!("{report}"));
            assert_eq!(judge.objections(&as_json(&text).unwrap()), None, "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 2, "only {seen} configurations found");
}

fn yaml_files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files = Vec::new();
    for path in entries.map(|entry| entry.path()) {
        if path.is_dir() {
            files.extend(yaml_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files
}

#[test]
fn a_later_pattern_overrides_an_earlier_one_key_by_key() {
    let config = with(
        "mode: observe\ntools:\n  '*': {slow_call: 9s, advice: wait}\n  'jira_*': {mode: enforce, target: /url, timeout: 10s}\n  jira_search: {slow_call: off, safety: SAFE_PROBE}\n",
    );
    let other = config.tools.settings("demo", "other");
    assert_eq!((other.policy.mode, other.policy.slow_call), (Mode::Observe, Some(Duration::from_secs(9))));
    assert_eq!(other.timeout, Duration::from_secs(300));
    assert_eq!(other.policy.trial_lease, Duration::from_secs(30));
    let search = config.tools.settings("demo", "jira_search");
    assert_eq!((search.policy.mode, search.policy.slow_call), (Mode::Enforce, None));
    assert_eq!(search.policy.advice.as_deref(), Some("wait"));
    assert_eq!(search.target, Target::Pointer("/url".into()));
    assert_eq!((search.timeout, search.policy.trial_lease), (Duration::from_secs(10), Duration::from_secs(10)));
    assert!(search.safe_probe && !other.safe_probe);
}

#[test]
fn settings_are_settled_once_for_a_tool_however_often_they_are_asked_for() {
    let config = read(SHORTEST);
    assert!(Arc::ptr_eq(&config.tools.settings("demo", "t"), &config.tools.settings("demo", "t")));
    assert_eq!(*config.tools.settings("gone", "t").policy, *config.tools.settings("demo", "t").policy);
}

#[test]
fn a_request_goes_to_the_backend_of_its_host_then_to_the_longest_prefix() {
    let config = read(
        "backends:
  - {name: any, kind: mcp, url: 'http://h/mcp'}
  - {name: deep, kind: mcp, url: 'http://h/mcp', match: {path_prefix: /a/b}}
  - {name: flat, kind: mcp, url: 'http://h/mcp', match: {path_prefix: /a/}}
  - {name: host, kind: mcp, url: 'http://h/mcp', match: {host: Tools.Example}}
  - {name: six, kind: mcp, url: 'http://h/mcp', match: {host: '[::1]', path_prefix: /six}}
",
    );
    for (host, path, name) in [
        (None, "/", "any"),
        (Some("x.example"), "/mcp", "any"),
        (None, "/a", "flat"),
        (None, "/a/x", "flat"),
        (None, "/ab", "any"),
        (None, "/a/b", "deep"),
        (None, "/a/b/c", "deep"),
        (None, "/a/bc", "flat"),
        (Some("tools.example"), "/a/b", "host"),
        (Some("TOOLS.example:8080"), "/", "host"),
        (Some("[::1]:8080"), "/six", "six"),
        (Some("[::1]"), "/six/x", "six"),
    ] {
        assert_eq!(config.backend_for(host, path).map(|backend| &*backend.name), Some(name), "{host:?} {path}");
    }
    let narrow = read("backends: [{name: a, kind: mcp, url: 'http://h', match: {path_prefix: /a}}]");
    assert!(narrow.backend_for(None, "/").is_none());
}

#[test]
fn addresses_clash_only_where_the_system_would_refuse_them() {
    for (listen, admin, fine) in [
        ("127.0.0.1:80", "127.0.0.2:80", true),
        ("0.0.0.0:80", "127.0.0.1:80", false),
        ("0.0.0.0:80", "'[::1]:80'", true),
        ("'[::]:80'", "127.0.0.1:80", false),
        ("127.0.0.1:0", "127.0.0.1:0", true),
    ] {
        let text = format!("{SHORTEST}listen: {listen}\nadmin: {{listen: {admin}}}\n");
        let read = Config::read(&Arc::new(Source::new("t.yaml", text)), Path::new(""));
        assert_eq!(read.is_ok(), fine, "{listen} and {admin}");
    }
}

#[test]
fn rule_files_lie_beside_the_configuration() {
    let config = with(
        "rules: {layers: [own.yaml, /abs.yaml], dir: d}\ntenants: {acme: {rules: {layers: [acme.yaml]}, history: {size: 50}}}\n",
    );
    assert_eq!(config.rules.layers, [Path::new("/etc/toolvane/own.yaml"), Path::new("/abs.yaml")]);
    assert_eq!(config.rules.dir.as_deref(), Some(Path::new("/etc/toolvane/d")));
    assert_eq!(config.tenants["acme"].layers, [Path::new("/etc/toolvane/acme.yaml")]);
    assert_eq!((config.tuning_of("acme").history_size, config.tuning_of("other").history_size), (50, 20));
}

#[test]
fn identity_headers_are_known_and_the_session_and_credentials_are_not_among_those_dropped() {
    let config = with("identity: {session: [{header: Mcp-Session-Id}, {header: x-thread}], tenant: [{static: t}]}\n");
    let dropped: Vec<&str> = config.identity.identity_headers().map(|name| name.as_str()).collect();
    assert_eq!(dropped, ["x-thread", "x-user-id", "x-project-id", "x-engine-roles"]);
    assert_eq!(config.identity.credential_headers().collect::<Vec<_>>(), [http::header::AUTHORIZATION]);
    assert!(config.identity.trusts("127.0.0.1".parse().unwrap()));
    assert!(!config.identity.trusts("10.0.0.1".parse().unwrap()));
}

#[test]
fn a_header_that_holds_a_credential_passes_whoever_sends_it() {
    let config = with("identity: {user: [{header: x-api-key}, {credential: x-api-key}]}\n");
    assert!(config.identity.identity_headers().all(|name| name != "x-api-key"));
}

#[test]
fn with_tokens_the_subject_and_the_roles_of_a_token_are_among_the_sources() {
    let config = with("identity: {jwt: {jwks: {file: keys.json}, issuer: i, audience: [a, b]}}\n");
    let jwt = config.identity.jwt.as_ref().unwrap();
    assert_eq!(jwt.jwks, crate::fetch::Location::File("/etc/toolvane/keys.json".into()));
    assert_eq!((jwt.issuers.len(), jwt.audiences.len(), jwt.leeway), (1, 2, Duration::from_secs(60)));
    assert_eq!(config.identity.claims().map(ToString::to_string).collect::<Vec<_>>(), ["sub", "roles"]);
    assert_eq!(config.identity.user.len(), 3);
    let own = with("identity: {user: [{jwt: /a/b}], jwt: {jwks: {url: 'https://i/k?x=1'}, issuer: i, audience: a}}\n");
    assert_eq!(own.identity.claims().map(ToString::to_string).collect::<Vec<_>>(), ["/a/b", "roles"]);
    assert_eq!(with("").identity.claims().count(), 0);
}

#[test]
fn arguments_alone_make_a_configuration() {
    let arguments = |backend: &str| Arguments { backend: backend.to_owned(), ..Arguments::default() };
    for (url, name, port) in [
        ("http://127.0.0.1:9000/mcp", "backend", 9000),
        ("http://localhost/mcp", "backend", 80),
        ("http://Jira.tools.example:8000/mcp", "jira.tools.example", 8000),
        ("http://[::1]:9000/mcp", "backend", 9000),
    ] {
        let config = Config::from_args(&arguments(url)).unwrap_or_else(|report| panic!("{report}"));
        assert_eq!((&*config.backends[0].name, config.backends[0].port()), (name, port));
    }
    let all = Arguments { listen: Some("[::]:1".into()), admin: Some("127.0.0.1:0".into()), ..arguments("http://h") };
    assert_eq!(Config::from_args(&all).unwrap().listen, ["[::]:1".parse().unwrap()]);
    let bad = Arguments { listen: Some("\"\n: x".into()), ..arguments("https://h") };
    assert_eq!(Config::from_args(&bad).unwrap_err().len(), 2);
}

#[test]
fn a_backend_beside_our_own_address_is_no_loop() {
    for (listen, url) in [
        ("127.0.0.1:9000", "http://127.0.0.2:9000"),
        ("127.0.0.1:9000", "http://[::1]:9000"),
        ("127.0.0.1:9000", "http://127.0.0.1:9001"),
        ("127.0.0.1:0", "http://127.0.0.1:8080"),
        ("0.0.0.0:9000", "http://backend:9000"),
        ("0.0.0.0:9000", "http://10.0.0.5:9000"),
    ] {
        let text = format!("listen: '{listen}'\nbackends: [{{name: a, kind: mcp, url: '{url}/mcp'}}]\n");
        assert!(Config::read(&Arc::new(Source::new("t.yaml", text)), Path::new("")).is_ok(), "{listen} and {url}");
    }
}
