//! Mistakes people make in the file, and what they are told: a table here, the words in `snapshots/`.

use std::path::Path;
use std::sync::Arc;

use super::Config;
use crate::yaml::Source;

/// Whether a JSON Schema can see the mistake, too.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Schema {
    Sees,
    Blind,
}
use Schema::{Blind, Sees};

const GOOD: &str = "backends: [{name: a, kind: mcp, url: 'http://h/mcp'}]\n";

/// What follows the first lines of a good file, unless it starts with `!`.
const MISTAKES: [(&str, Schema, &str); 106] = [
    ("no backends at all", Sees, "!listen: 127.0.0.1:8080\n"),
    ("empty list of backends", Blind, "!backends: []\n"),
    ("backends as a map", Sees, "!backends:\n  demo: {kind: mcp}\n"),
    ("key with a typo", Sees, "drain_timeot: 5s\n"),
    ("key in camel case", Sees, "drainTimeout: 5s\n"),
    ("key of another program", Sees, "upstreams: []\n"),
    ("required key with a typo", Sees, "!backends:\n  - {name: a, kind: mcp, ur: 'http://h/mcp'}\n"),
    ("required key missing", Sees, "!backends:\n  - name: a\n    kind: mcp\n"),
    ("key twice", Blind, "mode: observe\nmode: enforce\n"),
    ("key that is empty", Sees, "tools:\n"),
    ("address without port", Sees, "listen: 127.0.0.1\n"),
    ("port alone", Sees, "listen: 8080\n"),
    ("port after a colon", Sees, "listen: ':8080'\n"),
    ("name in place of an address", Blind, "listen: localhost:8080\n"),
    ("port too large", Blind, "listen: 127.0.0.1:80800\n"),
    ("no address", Blind, "listen: []\n"),
    ("one address twice", Blind, "listen: [127.0.0.1:8080, 127.0.0.1:8080]\n"),
    ("admin on the port of listen", Blind, "listen: 0.0.0.0:9000\nadmin: {listen: 127.0.0.1:9000}\n"),
    ("listen on the default port of admin", Blind, "listen: 127.0.0.1:9090\n"),
    ("backend where toolvane listens", Blind, "!backends: [{name: a, kind: mcp, url: 'http://localhost:8080/mcp'}]\n"),
    (
        "backend where toolvane listens on every address",
        Blind,
        "!listen: ['[::]:9000']\nbackends: [{name: a, kind: mcp, url: 'http://127.0.0.1:9000/mcp'}]\n",
    ),
    (
        "backend at the wildcard address of our port",
        Blind,
        "!listen: 127.0.0.1:9000\nbackends: [{name: a, kind: mcp, url: 'http://0.0.0.0:9000/mcp'}]\n",
    ),
    ("word that is none of the set", Sees, "mode: enforced\n"),
    ("word far from all", Sees, "mode: dry-run\n"),
    ("boolean for a word", Sees, "manifest: {annotate: false}\n"),
    ("backend name in capitals", Sees, "!backends: [{name: Demo, kind: mcp, url: 'http://h/mcp'}]\n"),
    ("backend name that is a number", Sees, "!backends: [{name: 1, kind: mcp, url: 'http://h/mcp'}]\n"),
    (
        "two backends of one name",
        Blind,
        "!backends:\n  - {name: a, kind: mcp, url: 'http://h/mcp'}\n  - {name: a, kind: mcp, url: 'http://i/mcp', match: {path_prefix: /i}}\n",
    ),
    (
        "two backends for all requests",
        Blind,
        "!backends:\n  - {name: a, kind: mcp, url: 'http://h/mcp'}\n  - {name: b, kind: mcp, url: 'http://i/mcp'}\n",
    ),
    (
        "two backends of one match",
        Blind,
        "!backends:\n  - {name: a, kind: mcp, url: 'http://h/mcp', match: {host: X.example}}\n  - {name: b, kind: mcp, url: 'http://i/mcp', match: {host: x.example}}\n",
    ),
    (
        "two prefixes that differ by a slash",
        Blind,
        "!backends:\n  - {name: a, kind: mcp, url: 'http://h/mcp', match: {path_prefix: /a}}\n  - {name: b, kind: mcp, url: 'http://i/mcp', match: {path_prefix: /a/}}\n",
    ),
    ("unknown kind of backend", Sees, "!backends: [{name: a, kind: mpc, url: 'http://h/mcp'}]\n"),
    ("backend over TLS", Sees, "!backends: [{name: a, kind: mcp, url: 'https://h/mcp'}]\n"),
    ("backend without scheme", Sees, "!backends: [{name: a, kind: mcp, url: 'localhost:9000/mcp'}]\n"),
    ("password in a URL", Sees, "!backends: [{name: a, kind: mcp, url: 'http://me:hunter2@h/mcp'}]\n"),
    ("query in a URL", Sees, "!backends: [{name: a, kind: mcp, url: 'http://h/mcp?key=1'}]\n"),
    ("port of a URL too large", Blind, "!backends: [{name: a, kind: mcp, url: 'http://h:99999/mcp'}]\n"),
    (
        "match with a port",
        Blind,
        "!backends: [{name: a, kind: mcp, url: 'http://h/mcp', match: {host: 'x.example:80'}}]\n",
    ),
    (
        "path prefix without slash",
        Sees,
        "!backends: [{name: a, kind: mcp, url: 'http://h/mcp', match: {path_prefix: v1}}]\n",
    ),
    ("HTTP/3", Sees, "!backends: [{name: a, kind: mcp, url: 'http://h/mcp', http: 3}]\n"),
    ("routes on an MCP server", Blind, "!backends: [{name: a, kind: mcp, url: 'http://h/mcp', routes: []}]\n"),
    ("HTTP API without routes", Blind, "!backends: [{name: a, kind: http, url: 'http://h'}]\n"),
    (
        "OpenAPI document of an MCP server",
        Blind,
        "!backends: [{name: a, kind: mcp, url: 'http://h', openapi: o.yaml}]\n",
    ),
    (
        "OpenAPI document by another protocol",
        Blind,
        "!backends: [{name: a, kind: http, url: 'http://h', openapi: 'ftp://h/o.yaml'}]\n",
    ),
    (
        "OpenAPI document as a map",
        Sees,
        "!backends: [{name: a, kind: http, url: 'http://h', openapi: {file: o.yaml}}]\n",
    ),
    ("HTTP API with a path", Blind, "!backends: [{name: a, kind: http, url: 'http://h/api', routes: []}]\n"),
    (
        "ping to an HTTP API",
        Blind,
        "!backends: [{name: a, kind: http, url: 'http://h', routes: [], probe: {mcp_ping: true}}]\n",
    ),
    (
        "route without tool",
        Sees,
        "!backends: [{name: a, kind: http, url: 'http://h', routes: [{method: GET, path: /a}]}]\n",
    ),
    (
        "method in small letters",
        Sees,
        "!backends: [{name: a, kind: http, url: 'http://h', routes: [{tool: t, method: get, path: /a}]}]\n",
    ),
    (
        "route with a query",
        Sees,
        "!backends: [{name: a, kind: http, url: 'http://h', routes: [{tool: t, method: GET, path: '/a?b=1'}]}]\n",
    ),
    (
        "two parameters in a segment",
        Blind,
        "!backends: [{name: a, kind: http, url: 'http://h', routes: [{tool: t, method: GET, path: '/a/{x}-{y}'}]}]\n",
    ),
    (
        "parameter twice",
        Blind,
        "!backends: [{name: a, kind: http, url: 'http://h', routes: [{tool: t, method: GET, path: '/{id}/{id}'}]}]\n",
    ),
    (
        "two routes of one form",
        Blind,
        "!backends:\n  - name: a\n    kind: http\n    url: http://h\n    routes:\n      - {tool: t, method: GET, path: '/a/{id}'}\n      - {tool: u, method: GET, path: '/a/{key}'}\n",
    ),
    ("duration without unit", Sees, "drain_timeout: 25\n"),
    ("duration of an unknown unit", Sees, "drain_timeout: 25 secs\n"),
    ("duration too long", Blind, "cooldown: {max: 48h}\n"),
    (
        "connect longer than response",
        Blind,
        "!backends: [{name: a, kind: mcp, url: 'http://h/mcp', timeouts: {connect: 10s, response: 5s}}]\n",
    ),
    ("false for off", Sees, "!backends: [{name: a, kind: mcp, url: 'http://h/mcp', timeouts: {idle: false}}]\n"),
    ("size of an unknown unit", Sees, "limits: {body_peek: 1 megabyte}\n"),
    ("size too small", Blind, "limits: {head: 10}\n"),
    ("count below one", Sees, "limits: {calls: 0}\n"),
    ("count with a fraction", Sees, "metrics: {tools_max: 1.5}\n"),
    ("yes for true", Sees, "tools: {t: {down_on_first_failure: yes}}\n"),
    ("target that is no pointer", Sees, "tools: {t: {target: url}}\n"),
    ("number for a text", Sees, "tools: {t: {advice: 42}}\n"),
    ("setting of a tool that does not exist", Sees, "tools:\n  \"jira_*\": {cooldown: 5m}\n"),
    ("claim without keys", Blind, "identity: {user: [{jwt: sub}]}\n"),
    ("claim that is no text", Sees, "identity: {jwt: {jwks: {file: k}, issuer: i, audience: a}, user: [{jwt: 1}]}\n"),
    ("tokens for any audience", Sees, "identity: {jwt: {jwks: {file: k.json}, issuer: 'https://i'}}\n"),
    ("tokens of nobody", Blind, "identity: {jwt: {jwks: {file: k}, issuer: [], audience: a}}\n"),
    ("keys as a text", Sees, "identity: {jwt: {jwks: 'https://i/keys', issuer: i, audience: a}}\n"),
    ("keys nowhere", Blind, "identity: {jwt: {jwks: {}, issuer: i, audience: a}}\n"),
    (
        "keys in two places",
        Blind,
        "identity: {jwt: {jwks: {url: 'https://i/keys', file: k.json}, issuer: i, audience: a}}\n",
    ),
    ("keys by another protocol", Sees, "identity: {jwt: {jwks: {url: 'ftp://i/keys'}, issuer: i, audience: a}}\n"),
    (
        "password before keys",
        Sees,
        "identity: {jwt: {jwks: {url: 'https://me:hunter2@i/keys'}, issuer: i, audience: a}}\n",
    ),
    ("symmetric algorithm", Sees, "identity: {jwt: {jwks: {file: k}, issuer: i, audience: a, algorithms: [HS256]}}\n"),
    ("no algorithm", Blind, "identity: {jwt: {jwks: {file: k}, issuer: i, audience: a, algorithms: []}}\n"),
    ("algorithm none", Sees, "identity: {jwt: {jwks: {file: k}, issuer: i, audience: a, algorithms: [none]}}\n"),
    ("leeway of an hour", Blind, "identity: {jwt: {jwks: {file: k}, issuer: i, audience: a, leeway: 1h}}\n"),
    ("keys read every second", Blind, "identity: {jwt: {jwks: {file: k}, issuer: i, audience: a, refresh: 1s}}\n"),
    ("header that holds a secret", Blind, "identity: {user: [{header: Authorization}]}\n"),
    ("two sources in one item", Blind, "identity: {user: [{header: x-user, static: me}]}\n"),
    ("source that is no map", Sees, "identity: {user: [x-user-id]}\n"),
    ("header that is no name", Sees, "identity: {user: [{header: 'x user'}]}\n"),
    ("network too long", Blind, "identity: {trusted_sources: [10.0.0.0/40]}\n"),
    ("path of a store in memory", Blind, "store: {engine: memory, path: x.redb}\n"),
    ("shared store", Sees, "store: {engine: redis, url: 'redis://h'}\n"),
    ("setting of a tenant that does not exist", Sees, "tenants: {acme: {histroy: {size: 3}}}\n"),
    ("integration that is not there", Blind, "integrations: {gmail: {}}\ntools: {t: {integration: gmial}}\n"),
    (
        "integration of a backend that is not there",
        Blind,
        "!backends: [{name: a, kind: mcp, url: 'http://h/mcp', integration: x}]\n",
    ),
    ("integration by the name of none", Blind, "integrations: {none: {}}\n"),
    ("two places of one credential", Blind, "tools: {t: {credentials_required: [{env: A, file: b}]}}\n"),
    ("env file without a key", Blind, "tools: {t: {credentials_required: [{env_file: .env}]}}\n"),
    ("credential as a text", Sees, "tools: {t: {credentials_required: [TAVILY_API_KEY]}}\n"),
    ("probe without a question", Blind, "integrations: {it: {probe: {timeout: 1s}}}\n"),
    ("probe of a path", Sees, "integrations: {it: {probe: {request: GET /me}}}\n"),
    ("probe without a method", Sees, "integrations: {it: {probe: {request: 'https://h/me'}}}\n"),
    (
        "secret of a probe in the file",
        Blind,
        "integrations: {it: {probe: {request: 'GET http://h', headers: {authorization: 'Bearer hunter2'}}}}\n",
    ),
    (
        "refresh token in the file",
        Blind,
        "integrations: {it: {probe: {oauth: {token_url: 'http://h', client_id: me, refresh_token: 'hunter2'}}}}\n",
    ),
    (
        "reference to nothing known",
        Blind,
        "integrations: {it: {probe: {request: 'GET http://h', headers: {x-key: '${vault:a}'}}}}\n",
    ),
    (
        "access token from nowhere",
        Blind,
        "integrations: {it: {probe: {request: 'GET http://h/${oauth:access_token}'}}}\n",
    ),
    ("meaning of no status", Sees, "integrations: {it: {probe: {request: 'GET http://h', ok: [6xx]}}}\n"),
    ("lifetime too short", Blind, "integrations: {it: {ttl: 10ms}}\n"),
    ("profiles without a header", Blind, "access: {profiles: {planner: {deny: ['*']}}}\n"),
    ("word for what is not set up", Sees, "manifest: {unready: drop}\n"),
    ("secret in the file", Sees, "admin: {listen: 127.0.0.1:9090, token: hunter2}\n"),
];

fn text_of(rest: &str) -> String {
    rest.strip_prefix('!').map_or_else(|| format!("{GOOD}{rest}"), str::to_owned)
}

#[test]
fn every_mistake_is_told_with_its_place_and_what_to_do() {
    let mut told = String::new();
    for (name, _, rest) in MISTAKES {
        let source = Arc::new(Source::new("toolvane.yaml", text_of(rest)));
        let report = Config::read(&source, Path::new("")).expect_err(name);
        assert!(!report.to_string().contains("hunter2"), "{name}: a secret is shown");
        told.push_str(&format!("# {name}\n{report}\n\n"));
    }
    insta::assert_snapshot!("mistakes", told);
}

#[test]
fn the_schema_sees_every_mistake_that_is_not_between_values() {
    let judge = super::tests::Judge::new();
    for (name, schema, rest) in MISTAKES {
        let Some(instance) = super::tests::as_json(&text_of(rest)) else {
            assert_eq!(schema, Blind, "{name}");
            continue;
        };
        assert_eq!(judge.objections(&instance).is_none(), schema == Blind, "{name}");
    }
}

#[test]
fn all_mistakes_of_a_file_are_told_at_once_in_the_order_of_their_places() {
    let text = "lissten: 127.0.0.1:80\nmode: enforced\nbackends:\n  - name: A\n    kind: mcp\n    url: ftp://h\nlimits:\n  calls: none\n";
    let report = Config::read(&Arc::new(Source::new("t.yaml", text)), Path::new("")).unwrap_err();
    let places: Vec<String> = report.problems().iter().map(|problem| problem.position()).collect();
    assert_eq!(places, ["t.yaml:1:1", "t.yaml:2:7", "t.yaml:4:11", "t.yaml:6:10", "t.yaml:8:10"]);
}
