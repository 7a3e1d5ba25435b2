#!/usr/bin/env python3
"""Writes docs/reference/*.md from what the program says of itself: the schema of its configuration, its help, its metrics and
the routes of its admin listener.

    python3 docs/generate.py [--toolvane PATH]            writes the files
    python3 docs/generate.py [--toolvane PATH] --check    fails if they are not what would be written
"""

import argparse
import difflib
import http.client
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(REPO / "tests" / "deploy"))

import metrics  # noqa: E402

MADE = "<!-- Written by docs/generate.py; change the source instead. -->"
# Labels whose values are a closed set of words.rs, by metric.
WORDS = {
    ("toolvane_calls_total", "outcome"): "Outcome",
    ("toolvane_short_circuits_total", "reason"): "Reason",
    ("toolvane_would_short_circuit_total", "reason"): "Reason",
    ("toolvane_integration_probes_total", "result"): "ProbeResult",
    ("toolvane_requests_total", "kind"): "RequestKind",
    ("toolvane_unjudged_total", "reason"): "Unjudged",
    ("toolvane_trials_total", "result"): "TrialResult",
    ("toolvane_list_rewrites_total", "result"): "ListResult",
}


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def table(head, rows):
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join('---' for _ in head)} |"]
    return "\n".join(lines + [f"| {' | '.join(cell(value) for value in row)} |" for row in rows])


def configuration(_):
    schema = json.loads((REPO / "config" / "toolvane.schema.json").read_text())
    parts = [
        "# Configuration",
        MADE,
        "`config/toolvane.yaml` shows every key with its default in place and explains it; this is the same by name, from the schema"
        " that editors use (`# yaml-language-server: $schema=…/toolvane.schema.json`). Unknown keys are errors; keys that begin with"
        " `x-` are ignored. `toolvane check FILE` shows every mistake at once.",
    ]
    required = set(schema["required"])
    for key, value in sorted(schema["properties"].items()):
        title = f"## `{key}`" + (" (must be there)" if key in required else "")
        rows = list(keys(key, value, schema))
        parts += [title, table(("key", "values", "default", "what it does"), rows)]
    return "\n\n".join(parts) + "\n"


def keys(path, value, schema):
    """One row per key, outer ones first."""
    value = followed(value, schema)
    default = f"`{json.dumps(value['default'])}`" if "default" in value else ""
    yield f"`{path}`", allowed(value, schema), default, value.get("description", "")
    for form in [value, *value.get("oneOf", []), *value.get("anyOf", [])]:
        form = followed(form, schema)
        if isinstance(form.get("items"), dict):
            yield from below(f"{path}[]", form["items"], schema)
        yield from below(path, form, schema)


def below(path, value, schema):
    value = followed(value, schema)
    for key, inner in sorted(value.get("properties", {}).items()):
        yield from keys(f"{path}.{key}", inner, schema)
    if isinstance(value.get("additionalProperties"), dict):
        yield from keys(f"{path}.NAME", value["additionalProperties"], schema)
    for form in [*value.get("oneOf", []), *value.get("anyOf", [])]:
        yield from below(path, form, schema)


def followed(value, schema):
    while "$ref" in value:
        found = schema
        for step in value["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        value = {**found, **{key: held for key, held in value.items() if key != "$ref"}}
    return value


def allowed(value, schema):
    value = followed(value, schema)
    if "enum" in value:
        return ", ".join(f"`{word}`" for word in value["enum"])
    if "const" in value:
        return f"`{value['const']}`"
    for several in ("oneOf", "anyOf"):
        if several in value:
            return " or ".join(dict.fromkeys(allowed(form, schema) for form in value[several]))
    kind = value.get("type", "anything")
    kind = " or ".join(kind) if isinstance(kind, list) else kind
    if kind == "array" and isinstance(value.get("items"), dict):
        return f"list of {allowed(value['items'], schema)}"
    bounds = [f"{value['minimum']}" if "minimum" in value else "", f"{value['maximum']}" if "maximum" in value else ""]
    if kind == "integer" and any(bounds):
        return f"integer, {bounds[0] or '…'} to {bounds[1] or '…'}"
    return {"object": "map", "string": "text", "boolean": "`true`, `false`"}.get(kind, kind)


def closed_sets():
    text = (REPO / "src" / "telemetry" / "words.rs").read_text()
    for name, body in re.findall(r"^    (\w+) \{\n(.*?)^    \}", text, re.MULTILINE | re.DOTALL):
        yield name, re.findall(r'=> "(\w+)"', body)


def metric_names(_):
    words = dict(closed_sets())
    used = shown_on()
    rows = []
    for name, (kind, help_text, labels) in metrics.families().items():
        told = []
        for label in labels:
            values = words.get(WORDS.get((name, label)), [])
            told.append(f"`{label}`" + (f" ({', '.join(values)})" if values else ""))
        rows.append((f"`{name}`", kind, ", ".join(told), help_text, used.get(name, "")))
    return (
        "\n\n".join(
            [
                "# Metrics",
                MADE,
                "All of them, as a scrape of `/metrics` shows them: Prometheus text, OpenMetrics, or protobuf with native"
                " histograms, as the scraper asks. Histograms have classic buckets"
                f" ({buckets()} s) and a native form. Labels are bounded: `backend` comes from the configuration, `tool` is capped by"
                " `metrics.tools_max` and `signature` and `rule` at 1,000 each (`other` beyond), the rest are closed sets."
                " Users and sessions are never labels.",
                table(("name", "type", "labels", "what it says", "shown on"), rows),
            ]
        )
        + "\n"
    )


def buckets():
    text = (REPO / "src" / "telemetry" / "metrics.rs").read_text()
    return re.search(r"const BUCKETS: \[f64; \d+\] = \[([^\]]*)\]", text)[1].replace(".0,", ",").removesuffix(".0")


def shown_on():
    found = {}
    for file in sorted((REPO / "dashboards" / "grafana").glob("*.json")):
        dashboard = json.loads(file.read_text())
        text = json.dumps([panel.get("targets") for panel in dashboard["panels"]])
        for name in set(re.findall(r"\b(?:toolvane|process)_[a-z0-9_]+", text)):
            name = re.sub(r"_bucket$", "", name)
            found.setdefault(name, []).append(file.stem)
    return {name: ", ".join(sorted(set(files))) for name, files in found.items()}


def said_of(text, function):
    """What the comment of a handler says, without the request that it begins with."""
    found = re.search(rf"((?: *///[^\n]*\n)+)(?: *#\[[^\n]*\n)*(?:pub\([\w ]+\) )?async fn {function}\b", text)
    words = " ".join(line.strip(" /") for line in found[1].splitlines()) if found else ""
    words = re.sub(r"^`[A-Z]+ [^`]*`: ", "", words)
    return words[:1].upper() + words[1:]


def routes(binary):
    admin = REPO / "src" / "admin"
    files = {file.stem: file.read_text() for file in sorted(admin.glob("*.rs"))}
    files |= {file.parent.name: file.read_text() for file in sorted(admin.glob("*/mod.rs"))}
    rows = []
    for path, methods in re.findall(r'\.route\(\s*"([^"]+)",\s*((?:[^()]|\([^()]*\))+)\)', files["mod"]):
        for method, handler in re.findall(r"\b(get|post|put|delete)\(([\w:]+)\)", methods):
            where, _, function = handler.rpartition("::")
            rows.append((f"`{method.upper()} {path}`", said_of(files[where or "mod"], function)))
    assert rows, "no route found in src/admin"
    document = openapi(binary)
    parts = [
        "# Admin API",
        MADE,
        "Answers are JSON, errors are problem documents (RFC 9457). Filters of `/v1/health` are `scope`, `scopeId`, `tenant`,"
        " `backend`, `tool` and `status`.",
        table(("request", "answer"), rows),
        "## Requests and what they answer",
        "From the OpenAPI document (`GET /v1/openapi.json`). What a body or an answer holds is below, object by object.",
        table(("request", "role", "query", "body", "answer"), operations(document)),
        "## Objects",
    ]
    for name, schema in sorted(document["components"]["schemas"].items()):
        parts += described(name, schema)
    return "\n\n".join(parts) + "\n"


class OverSocket(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=10)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


def openapi(binary):
    """What a process says at `/v1/openapi.json`."""
    with tempfile.TemporaryDirectory() as folder:
        path, file = pathlib.Path(folder, "admin.sock"), pathlib.Path(folder, "toolvane.yaml")
        file.write_text(
            f'listen: 127.0.0.1:0\nadmin: {{listen: "127.0.0.1:0", socket: {path}}}\nstore: {{engine: memory}}\n'
            "backends: [{name: demo, kind: mcp, url: http://127.0.0.1:9/mcp}]\n"
        )
        command = [binary, "run", "--config", file]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={})
        try:
            return fetched(process, path)
        finally:
            process.kill()
            process.wait()


def fetched(process, path):
    until = time.monotonic() + 30
    while time.monotonic() < until and process.poll() is None:
        connection = OverSocket(path)
        try:
            connection.request("GET", "/v1/openapi.json")
            return json.load(connection.getresponse())
        except OSError:
            time.sleep(0.05)
        finally:
            connection.close()
    raise RuntimeError(f"toolvane does not answer on {path}; run `toolvane run` by hand to see why")


def operations(document):
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            query = ", ".join(f"`{one['name']}`" for one in told["parameters"] if one["in"] == "query")
            body = held_in(told.get("requestBody", {}))
            answers = [f"{code} {held_in(answer)}".rstrip() for code, answer in told["responses"].items() if code != "default"]
            yield f"`{method.upper()} {path}`", told.get("x-role", "anybody"), query, body, "; ".join(answers)


def held_in(message):
    content = message.get("content", {})
    if "application/json" in content:
        return kind(content["application/json"]["schema"])
    return ", ".join(f"`{media.split(';')[0]}`" for media in content)


def described(name, schema):
    """One object: what it is, and its fields, those of its variants last."""
    parts = [f"### {name}", *filter(None, [schema.get("description", "").replace("\n", " ")])]
    rows = list(fields(schema))
    words = [value for form in [schema, *schema.get("oneOf", [])] for value in form.get("enum", [form.get("const")]) if value]
    if words:
        about = {form["const"]: form.get("description", "") for form in schema.get("oneOf", []) if "const" in form}
        parts.append(table(("value", "meaning"), [(f"`{word}`", about.get(word, "")) for word in words]))
    elif rows:
        parts.append(table(("field", "type", "meaning"), rows))
    else:
        parts.append(kind(schema))
    return parts


def fields(schema):
    required = set(schema.get("required", []))
    for key, value in schema.get("properties", {}).items():
        yield f"`{key}`" + (" (always there)" if key in required else ""), kind(value), value.get("description", "")
    for form in [*schema.get("allOf", []), *schema.get("oneOf", []), *schema.get("anyOf", [])]:
        yield from fields(form)


def kind(schema):
    """What a value may be, with links to the objects."""
    if schema is True or not isinstance(schema, dict):
        return "anything"
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "const" in schema or "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]) if value is not None)
    several = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if several:
        return " or ".join(dict.fromkeys(filter(None, map(kind, several))))
    types = schema.get("type", "anything")
    types = types if isinstance(types, list) else [types]
    if schema.get("format") == "date-time":
        types = ["time" if one == "string" else one for one in types]
    if "array" in types:
        types = [f"list of {kind(schema.get('items', True))}" if one == "array" else one for one in types]
    if isinstance(schema.get("additionalProperties"), dict):
        types = [f"map to {kind(schema['additionalProperties'])}" if one == "object" else one for one in types]
    return " or ".join(types)


def rule_keys(file):
    """The keys that one reader of rule files takes: key, what it does, the words that it may be, whether it must be there."""
    folder = REPO / "src" / "rules" / "file"
    text = (folder / file).read_text()
    lists = {
        name: re.findall(r'\("([\w-]+)"', body)
        for source in sorted(folder.glob("*.rs"))
        for name, body in re.findall(r"const (\w+): \[[^=]*= \[(.*?)\];", source.read_text(), re.DOTALL)
    }
    readers = list(re.finditer(r'fields\s*\.(opt|need|word|flag)\(\s*"(\w+)",\s*"([^"]+)"', text))
    for found, following in zip(readers, [*readers[1:], None], strict=True):
        rest = text[found.end() : following.start() if following else found.end() + 200].split(";")[0]
        named = re.search(r"&(?:\w+::)?([A-Z_]+)\b", rest)
        words = lists.get(named[1], []) if named else re.findall(r'\("([\w-]+)",', rest)
        words = ["true", "false"] if found[1] == "flag" or "at.bool()" in rest else words
        yield found[2], found[3], words, found[1] == "need"


def key_table(file, leave_out=(), only=None):
    rows = [
        (f"`{key}`" + (" (must be there)" if needed else ""), ", ".join(f"`{value}`" for value in values), about)
        for key, about, values, needed in rule_keys(file)
        if key not in leave_out and (only is None or key in only)
    ]
    return table(("key", "one of", "what it says"), rows)


def rules(_):
    def section(title, words, file, leave_out=()):
        return [f"## {title}", words, key_table(file, leave_out)]

    parts = [
        "# Rules",
        MADE,
        "The keys of a rule file (`patterns: [...]`). The first rule that matches decides. How layers are laid over each other, and"
        " ten worked examples: [cookbook](../cookbook.md). The bundled table is `config/error-patterns.yaml`.",
        *section("A rule", "What stands beside `match` is in the next but one section.", "mod.rs", {"patterns"}),
        *section("`match`", "Fields are ANDed, lists are ORed, `{}` matches everything.", "when.rs"),
        *section("What follows", "Stands in the rule, beside `match`.", "then.rs"),
        *section("`tests`", "Each is an outcome, and whether the rule matches it.", "cases.rs"),
    ]
    return "\n\n".join(parts) + "\n"


CASES = """```yaml
cases:
  - name: too many calls
    status: 429
    headers: {retry-after: "30"}
    expect: {classification: INTERMITTENT, hint: 30s}
  - name: nobody listens
    exceptionType: connect-refused
    expect: {rule: fault-connect-refused, dispatchCode: BACKEND_UNREACHABLE}
  - name: a tool that lacks an argument
    rpcCode: -32602
    body: "missing argument: id"
    expect: {classification: USER_INPUT}
```"""


def cases(_):
    of_case = ("name", "expect")
    parts = [
        "# Cases",
        MADE,
        "A file of cases (`cases: [...]`) names outcomes, each with what must come of it. `toolvane test RULES… CASES…` judges them by"
        " the bundled table with these rule files over it, and exits with 1 if one does not come out so; `toolvane check` reads it"
        " without judging.",
        CASES,
        "## A case",
        "Unknown keys are errors; keys that begin with `x-` are ignored.",
        key_table("suite.rs", only=of_case),
        "## The outcome",
        "Stands in the case, beside `expect`, and in the `tests` of a rule. Facts that exclude each other, such as `kind: http` and"
        " `rpcCode`, are errors.",
        key_table("cases.rs", leave_out={"expect"}),
        "## `expect`",
        "At least one of them; what is left out may be anything.",
        key_table("suite.rs", leave_out=of_case),
        "## Cases in JSON",
        "`toolvane classify`, `explain --case`, `replay` and `POST /v1/explain` take an outcome as it was on the wire, one JSON object"
        " a line: [Case](api.md#case). Without a `content-type` an MCP answer is read as what it looks like: JSON, or a stream of"
        " events. Unknown members of its parts are errors. Beside them a case may have members of its own, such as what is expected"
        " of it; in files, one whose name is nearly that of a known member is an error too.",
    ]
    return "\n\n".join(parts) + "\n"


def commands(binary):
    def told(*words):
        done = subprocess.run(
            [binary, *words, "--help"], capture_output=True, text=True, check=True, env={"PATH": "/usr/bin"}
        )
        return done.stdout.rstrip()

    top = told()
    names = [
        name
        for name in re.findall(r"^  ([a-z][a-z-]*)  +\S", top.split("Commands:")[1].split("Options:")[0], re.MULTILINE)
    ]
    parts = ["# Commands", MADE, f"```text\n{top}\n```"]
    for name in names:
        if name != "help":
            text = told(name)
            parts += [f"## toolvane {name}", f"```text\n{text}\n```"]
            inner = text.split("Commands:")[1].split("\n\n")[0] if "Commands:" in text else ""
            for sub in re.findall(r"^  ([a-z][a-z-]*)  +\S", inner, re.MULTILINE):
                if sub != "help":
                    parts += [f"### toolvane {name} {sub}", f"```text\n{told(name, sub)}\n```"]
    return "\n\n".join(parts) + "\n"


PAGES = {
    "configuration": configuration,
    "rules": rules,
    "cases": cases,
    "metrics": metric_names,
    "api": routes,
    "commands": commands,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toolvane", default=REPO / "target" / "debug" / "toolvane")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    stale = []
    for name, make in PAGES.items():
        path = HERE / "reference" / f"{name}.md"
        text = make(given.toolvane)
        if not given.check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            old = path.read_text() if path.exists() else ""
            stale += [f"{path.relative_to(REPO)} is not what docs/generate.py writes:"]
            stale += list(difflib.unified_diff(old.splitlines(), text.splitlines(), lineterm="", n=0))[:12]
    if stale:
        sys.exit("\n".join([*stale, "run `make docs` and commit the result"]))


if __name__ == "__main__":
    main()
