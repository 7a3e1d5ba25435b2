"""Tools that are not set up, not allowed or not for this caller do not mislead the model: real servers, real clients."""

import json
import subprocess
import time

import pytest

from harness import measured
from harness.processes import eventually

HEALTH = "toolvane/health"
# What users may expect is asserted at five times the figure: the machine that runs the tests is busy.
SLACK = 5
CLIENTS = ["typescript-2", "python-2", "typescript-2-stateless", "python-1"]


def entry(front, tool, **caller):
    tools = front.get_json("/v1/manifest", **caller)["tools"]
    return next(found for found in tools if found["tool"] == tool)


def state(front, integration):
    return front.get_json(f"/v1/integrations/{integration}")["state"]


def behind(service, ttl):
    """The demo server's `echo`, with a service behind it."""
    probe = {"request": f"GET {service.url}", "headers": {"authorization": "Bearer ${file:token}"}}
    return {
        "integrations": {"mail": {"setup_hint": "Sign in to the mail service.", "ttl": ttl, "probe": probe}},
        "tools": {"echo": {"integration": "mail"}},
    }


@pytest.fixture
def token(workshop):
    path = workshop.folder / "token"
    path.write_text("planted-token")
    return path


@pytest.mark.parametrize("name", CLIENTS)
def test_a_key_that_is_missing_hides_the_tool_and_one_that_appears_brings_it(workshop, name):
    demo = workshop.demo()
    key = workshop.folder / "echo.key"
    key.unlink(missing_ok=True)
    needs = {"credentials_required": [{"file": str(key)}], "setup_hint": "Save the key."}
    front = workshop.toolvane(demo.url, tools={"echo": needs})
    client = workshop.client(name, front.url, user="alice")
    listening = "subscriptions/listen" if client.era == "modern" else "GET"
    eventually(lambda: demo.stats()["methods"].get(listening, 0) > 0, 1 * SLACK, "the client's own stream to open")

    assert "echo" not in client.tools() and "slow" in client.tools()
    hidden = entry(front, "echo", user="alice")
    assert (hidden["listed"], hidden["statusReason"], hidden["setupStep"]) == (False, "credentials_missing", "Save the key.")
    answer = client.call("echo", {"text": "x"})
    assert answer["isError"] and "Save the key." in answer["text"]
    assert answer["meta"][HEALTH]["statusReason"] == "credentials_missing"
    assert demo.arrived("echo") == 0

    key.write_text("k")
    written = time.monotonic()
    eventually(lambda: "echo" in client.tools(), 2 * SLACK, "the tool to be listed")
    measured.note("a tool whose key was written is listed", time.monotonic() - written, 2)
    eventually(lambda: client.seen()["listChanged"] == 1, 2 * SLACK, "the client to hear of it")
    assert client.call("echo", {"text": "there"})["text"] == "there"
    assert client.seen()["listChanged"] == 1
    assert front.total("toolvane_tools_hidden") == 0


def test_a_token_that_is_revoked_hides_the_tool_when_the_answer_has_grown_old_and_not_before(workshop, service, token):
    demo = workshop.demo()
    front = workshop.toolvane(demo.url, **behind(service, "3s"))
    clients = [workshop.client(name, front.url, user=name) for name in ("typescript-2", "python-2")]
    assert all("echo" in client.tools() for client in clients)
    eventually(lambda: state(front, "mail") == "ready", 1 * SLACK, "the service to be asked")
    service.status, before = 401, service.asked
    while service.asked == before:
        listed = all("echo" in client.tools() for client in clients)
        assert listed or service.asked > before, "hidden before the service was asked again"
    assert service.asked_at[before] - service.asked_at[before - 1] >= 2.9
    eventually(lambda: all("echo" not in client.tools() for client in clients), 1 * SLACK, "the tool to be hidden")
    assert entry(front, "echo")["statusReason"] == "integration_unconfigured"
    assert "Sign in" in clients[0].call("echo", {"text": "x"})["text"]
    assert set(service.authorization) == {"Bearer planted-token"}

    service.status = 200
    token.write_text("another-planted-token")
    eventually(lambda: all("echo" in client.tools() for client in clients), 2 * SLACK, "a new token to be tried")
    said = "".join(front.program.lines) + front.get("/metrics")[1] + front.get("/v1/integrations")[1]
    assert "planted-token" not in said


def test_a_service_that_flaps_never_changes_the_list(workshop, service, token):
    demo = workshop.demo()
    front = workshop.toolvane(demo.url, **behind(service, "1s"))
    client = workshop.client("typescript-2", front.url, user="alice")
    plain = client.tools()
    eventually(lambda: state(front, "mail") == "ready", 1 * SLACK, "the service to be asked")
    for turn in range(50):
        service.status, before = (503, 200, 429, 500)[turn % 4], service.asked
        eventually(lambda: service.asked > before, 2 * SLACK, "the service to be asked")
        assert state(front, "mail") == "ready"
        assert client.tools() == plain
    assert client.seen()["listChanged"] == 0


def test_after_a_restart_nothing_is_hidden_until_a_probe_said_so(workshop, service, token):
    demo = workshop.demo()
    service.status = 401
    front = workshop.toolvane(demo.url, drain_timeout="1s", **behind(service, "1h"))
    client = workshop.client("python-2", front.url, user="alice")
    client.tools()
    eventually(lambda: "echo" not in client.tools(), 1 * SLACK, "the tool to be hidden")
    assert client.close() == {}
    front.stop()

    before = service.asked
    front = workshop.toolvane(demo.url, **behind(service, "1h"))
    client = workshop.client("python-2", front.url, user="alice")
    first = client.tools()
    assert "echo" in first or service.asked > before, "hidden though nobody had been asked"
    eventually(lambda: "echo" not in client.tools(), 1 * SLACK, "the tool to be hidden")
    assert service.asked == before + 1


@pytest.mark.parametrize("backend", ["demo", "everything", "conformance"])
def test_without_the_role_a_tool_is_as_unknown_as_one_that_never_was(workshop, backend):
    if backend == "demo":
        url, tool = workshop.demo().url, "echo"
    elif backend == "everything":
        url, tool = workshop.everything_server().url("node server") + "/mcp", "echo"
    else:
        url, tool = workshop.conformance_server().url("conformance server"), "test_simple_text"
    front = workshop.toolvane(url, tools={tool: {"requiresEngineRoles": ["reader"]}})
    for name in ("typescript-2", "python-2"):
        client = workshop.client(name, front.url)
        reader = workshop.client(name, front.url, headers={"x-engine-roles": "reader"})
        assert tool not in client.tools() and tool in reader.tools()
        hidden, unknown = client.call(tool), client.call("n_o_t_h_e_r_e")
        assert json.dumps(hidden).replace(tool, "n_o_t_h_e_r_e") == json.dumps(unknown), name
        assert HEALTH not in json.dumps(hidden)
    assert entry(front, tool)["statusReason"] == "role_missing"


def test_the_commands_tell_operators_the_same(workshop, service, token):
    demo = workshop.demo()
    service.status = 403
    front = workshop.toolvane(demo.url, **behind(service, "1h"))
    client = workshop.client("typescript-2", front.url, user="alice")
    client.tools()
    eventually(lambda: state(front, "mail") == "auth_failed", 1 * SLACK, "the service to be asked")
    binary = workshop.config.getoption("toolvane")

    def run(*words):
        return subprocess.run([binary, *words], capture_output=True, text=True, timeout=30)

    table = run("integrations", "--admin", front.admin)
    assert table.returncode == 0 and "auth_failed" in table.stdout and "echo" in table.stdout, table
    shown = json.loads(run("manifest", "--user", "alice", "-o", "json", "--admin", front.admin).stdout)["tools"]
    assert [tool["statusReason"] for tool in shown if tool["tool"] == "echo"] == ["integration_unconfigured"]
    assert "Sign in" in run("manifest", "--admin", front.admin).stdout
    gone = run("integrations", "--admin", "127.0.0.9:9")
    assert gone.returncode == 69 and gone.stdout == "" and "nobody answers" in gone.stderr
