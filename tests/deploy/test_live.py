"""A real Prometheus scrapes running sidecars through ten kinds of trouble; then every expression of every dashboard, alert and
recording rule is asked and must have data. Once with native histograms, once with classic ones, as older servers store them."""

import concurrent.futures
import json
import re
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request

import metrics
import promexpr
import pytest
from harness.fixtures import Workshop
from harness.processes import Program, eventually
from tools import CACHE, prometheus

pytestmark = pytest.mark.verify

# What no scenario from outside can bring about: it takes a fault of toolvane, or 50,000 documents. They must be there once one
# of them happens; until then an empty answer is right.
ONLY_IN_TROUBLE = {"toolvane_internal_errors_total", "toolvane_evictions_total"}
# Sessions and their streams are needed; tests/e2e plays them.
ONLY_WITH_STREAMS = {"toolvane_list_changed_notifications_total"}
EXCUSED = ONLY_IN_TROUBLE | ONLY_WITH_STREAMS
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
TROUBLE_SECONDS = 20
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


# A public key of RFC 8037, with which nobody signs anything here.
KEYS = {"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}


def call(url, tool, arguments=None, user="somebody", method="tools/call", token=None):
    """One request as a client of 2026-07-28 makes it; what comes back is not the point."""
    named = {"name": tool, "arguments": arguments or {}} if method == "tools/call" else {}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**named, "_meta": META}}).encode()
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        "x-user-id": user,
        "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01",
        **({"mcp-name": tool} if named else {}),
        **({"authorization": f"Bearer {token}"} if token else {}),
    }
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


class Prometheus:
    """A server of its own that scrapes every half second."""

    def __init__(self, name, targets, folder, *features):
        self.folder = folder / name
        self.folder.mkdir(parents=True, exist_ok=True)
        rules = [self.folder / file.name for file in promexpr.RULES]
        for copy, file in zip(rules, promexpr.RULES, strict=True):
            # Evaluated as often as is scraped, so that nobody waits for the next turn.
            copy.write_text(re.sub(r"^    interval: .*\n", "", file.read_text(), flags=re.MULTILINE))
        config = {
            "global": {"scrape_interval": "500ms", "evaluation_interval": "1s"},
            "rule_files": list(map(str, rules)),
            "scrape_configs": [{"job_name": "toolvane", "static_configs": [{"targets": targets}]}],
        }
        file = self.folder / "prometheus.yml"
        file.write_text(json.dumps(config))
        data = self.folder / "data"
        shutil.rmtree(data, ignore_errors=True)
        command = [
            prometheus(),
            f"--config.file={file}",
            f"--storage.tsdb.path={data}",
            "--web.listen-address=127.0.0.1:0",
        ]
        if features:
            command.append(f"--enable-feature={','.join(features)}")
        self.program = Program(name, command, self.folder)
        eventually(self._address, 30, "Prometheus to listen")
        eventually(lambda: self.query("count(up == 1) == 2"), 30, "Prometheus to reach both sidecars")

    def _address(self):
        said = "".join(self.program.lines)
        found = re.search(r'"Listening on" address=127\.0\.0\.1:(\d+)', said)
        self.url = f"http://127.0.0.1:{found[1]}" if found else None
        return self.url and "Server is ready" in said

    def get(self, path, **query):
        with urllib.request.urlopen(f"{self.url}{path}?{urllib.parse.urlencode(query)}", timeout=30) as answer:
            return json.load(answer)["data"]

    def query(self, expression):
        """The samples that an expression gives now; a mistake in it is an error."""
        try:
            return self.get("/api/v1/query", query=expression)["result"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{expression}: {error.read().decode()}") from error

    def stop(self):
        self.program.stop()


def trouble(demo, whole, narrow):
    """What happens on the dashboards: healthy calls, tools that break, one user's trouble, a backend that dies and returns."""
    url = whole.url
    demo.fail("progress", "rpc")
    for sidecar in (whole, narrow):
        call(sidecar.url, "", method="tools/list")
    call(narrow.url, "echo", {"text": "who?"}, token="no.good.token")
    with concurrent.futures.ThreadPoolExecutor(6) as several:
        started = time.monotonic()
        turn = 0
        while (passed := time.monotonic() - started) < TROUBLE_SECONDS:
            turn += 1
            calls = [
                (url, "echo", {"text": "hello"}),
                (url, "broken", {}),
                (url, "flaky", {"fail": 1, "of": 2, "tool_error": True}),
                (url, "rate_limited", {}),
                (url, "needs_permission", {}, "alice"),
                (url, "expired_token", {}, "alice"),
                (url, "fetch_url", {"url": "https://down.example"}),
                (url, "progress", {"steps": 1}),
                (url, "ask"),
                (url, "bad_arguments", {"seats": 0, "class": "economy"}),
                (narrow.url, "slow", {"delay_ms": 300}),
                (narrow.url, "echo", {"text": "hello"}),
                (narrow.url, "slow", {"delay_ms": 300}),
            ]
            if turn == 1:
                calls.append((url, "echo", {"text": "x" * 2_000_000}))
            list(several.map(lambda made: call(*made), calls))
            if passed > TROUBLE_SECONDS / 2 and demo.program.running:
                demo.kill()
                for _ in range(3):
                    call(url, "echo", {"text": "anybody there?"})
                whole.wait_for("echo", "DOWN", within=10)
                call(url, "echo", {"text": "still nobody?"})
                call(url, "", method="tools/list")
                demo.come_back()


@pytest.fixture(scope="module")
def fleet(request):
    folder = CACHE / "logs" / "live"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.redb*"):
        old.unlink()
    workshop = Workshop(request.config, folder)
    demo = workshop.demo()
    # One integration is set up, the other one is refused by what stands in for its service.
    probe = {"request": f"GET {demo.control}/stats"}
    refused = {"request": f"GET {demo.control}/nothing", "auth_failed": [404]}
    tools = {
        "echo": {"integration": "words"},
        "progress": {"mode": "observe"},
        "ask": {"integration": "people"},
    }
    integrations = {"words": {"probe": probe}, "people": {"probe": refused}}
    whole = workshop.toolvane(demo.url, tools=tools, integrations=integrations)
    keys = folder / "keys.json"
    keys.write_text(json.dumps(KEYS))
    jwt = {"jwks": {"file": str(keys)}, "issuer": "https://issuer.example", "audience": "toolvane"}
    identity = {"trusted_sources": ["10.0.0.0/8"], "jwt": jwt}
    narrow = workshop.toolvane(demo.url, limits={"calls": 1}, metrics={"tools_max": 1}, identity=identity)
    targets = [sidecar.admin.removeprefix("http://") for sidecar in (whole, narrow)]
    native = workshop._keep(Prometheus("native", targets, folder, "native-histograms", "exemplar-storage"))
    classic = workshop._keep(Prometheus("classic", targets, folder))
    trouble(demo, whole, narrow)
    # The last scrapes and evaluations of rules.
    eventually(
        lambda: all(server.query("tool:toolvane_calls:rate5m") for server in (native, classic)), 60, "recorded series"
    )
    yield {"native": native, "classic": classic, "whole": whole, "narrow": narrow}
    workshop.close()


def missing(server, expressions, **variables):
    """Those of the expressions that have no data."""
    empty = []
    for where, expression in expressions:
        found = server.query(promexpr.filled(expression, interval="45s", span="5m", **variables))
        excused = promexpr.metrics_in(expression) & EXCUSED
        if not found and not excused:
            empty.append(f"{where}: {expression}")
    return empty


@pytest.mark.parametrize("kind", ["native", "classic"])
def test_every_panel_has_data(fleet, kind):
    expressions = list(promexpr.panel_expressions())
    assert len(expressions) > 60
    empty = missing(fleet[kind], [e for e in expressions if "toolvane-tool" not in e[0]])
    of_tool = [e for e in expressions if "toolvane-tool" in e[0]]
    empty += missing(fleet[kind], of_tool, tool="broken", backend="backend")
    assert empty == []


@pytest.mark.parametrize("kind", ["native", "classic"])
def test_every_recording_rule_has_data_and_every_alert_has_what_it_watches(fleet, kind):
    recorded = [(where, where) for where, _ in promexpr.rule_expressions() if ":" in where]
    watched = [(where, promexpr.watched(text)) for where, text in promexpr.rule_expressions() if ":" not in where]
    assert len(recorded) >= 7 and len(watched) >= 10
    assert missing(fleet[kind], recorded + watched) == []


@pytest.mark.parametrize("kind", ["native", "classic"])
def test_every_variable_of_a_dashboard_offers_something(fleet, kind):
    for where, text in promexpr.variable_queries():
        selector, label = promexpr.label_values(text)
        found = fleet[kind].query(f"count by ({label}) ({promexpr.filled(selector)})")
        assert found and all(series["metric"].get(label) for series in found), where


def test_native_histograms_arrive_as_such(fleet):
    for metric in ("toolvane_call_duration_seconds", "toolvane_upstream_duration_seconds"):
        found = fleet["native"].query(f"{metric}{{tool='echo'}}")
        assert found and all("histogram" in series for series in found)
        assert fleet["classic"].query(f"{metric}_bucket{{tool='echo'}}")


def test_durations_name_the_traces_of_calls(fleet):
    window = {"start": time.time() - 600, "end": time.time() + 60}
    found = fleet["native"].get("/api/v1/query_exemplars", query="toolvane_call_duration_seconds{tool='echo'}", **window)
    exemplars = [exemplar for series in found for exemplar in series["exemplars"]]
    assert exemplars and {exemplar["labels"]["trace_id"] for exemplar in exemplars} == {TRACE}


def test_a_scrape_shows_what_the_sources_register_and_nothing_else(fleet):
    known = metrics.families()
    seen = {}
    for sidecar in (fleet["whole"], fleet["narrow"]):
        _, text = sidecar.get("/metrics", accept="text/plain")
        seen |= metrics.read(text)
    assert {name: known[name][:2] for name in seen if name in known} == seen
    assert set(known) - set(seen) - EXCUSED == set()


def test_every_label_that_is_scraped_is_one_that_is_documented(fleet):
    known = metrics.families()
    for series in fleet["classic"].get("/api/v1/series", **{"match[]": '{__name__=~"toolvane_.+|process_.+"}'}):
        name = series.pop("__name__")
        if ":" in name:
            continue
        labels = set(series) - {"job", "instance", "le"}
        assert labels <= set(known[name if name in known else promexpr.base(name)][2]), name


def test_rules_are_evaluated_without_an_error(fleet):
    for kind in ("native", "classic"):
        groups = fleet[kind].get("/api/v1/rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        assert len(rules) >= 17
        assert [rule["lastError"] for rule in rules if rule.get("lastError")] == []
