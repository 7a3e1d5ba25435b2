"""The MCP server of the admin listener and the official SDK clients: each role sees its tools, and what they write holds."""

import json
import urllib.request

import pytest

from harness.clients import CLIENTS

TOKENS = {"ops": "operator", "engine": "tool-health-writer", "prober": "tool-prober", "viewer": "reader"}
READS = {"tool_health_read", "tool_health_lookup"}
WRITES = {
    *("tool_health_set_unavailable", "tool_health_set_available", "tool_health_set_cooldown"),
    *("tool_health_clear_cooldown", "tool_health_clear"),
}
PROBES = {"tool_probe_as_user", "tool_probe_as_system"}
PLACE = {"tool": "echo", "scope": "PROJECT", "scopeId": "default"}


def secret(name):
    return f"{name}-token-0123456789"


@pytest.fixture
def front(workshop):
    for name in TOKENS:
        (workshop.folder / f"token-{name}").write_text(secret(name))
    tokens = [
        {"name": name, "token": {"file": str(workshop.folder / f"token-{name}")}, "roles": [role]}
        for name, role in TOKENS.items()
    ]
    return workshop.toolvane(
        workshop.demo().url,
        admin={"listen": "127.0.0.1:0", "tokens": tokens},
        tools={"echo": {"safety": "SAFE_PROBE", "sample": {"text": "hello"}}},
    )


def connect(workshop, client, front, name):
    return workshop.client(client, f"{front.admin}/mcp", headers={"authorization": f"Bearer {secret(name)}"})


def audited(front):
    request = urllib.request.Request(f"{front.admin}/v1/events?kind=audit&after=0")
    with urllib.request.urlopen(request, timeout=5) as stream:
        for line in stream:
            if line.startswith(b"data: "):
                return json.loads(line.removeprefix(b"data: "))


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_sees_the_tools_of_its_role_and_what_it_writes_holds(workshop, front, client):
    viewer = connect(workshop, client, front, "viewer")
    assert set(viewer.tools()) == READS
    engine = connect(workshop, client, front, "engine")
    assert set(engine.tools()) == READS | WRITES
    prober = connect(workshop, client, front, "prober")
    assert set(prober.tools()) == READS | PROBES

    refused = engine.call("tool_health_set_unavailable", {**PLACE, "reason": "rebuilt"})
    assert refused["isError"] and "say until when: `expiresIn`" in refused["text"]
    down = {**PLACE, "reason": "the index is being rebuilt", "expiresIn": "15m"}
    written = engine.call("tool_health_set_unavailable", down)
    assert not written["isError"], written
    assert json.loads(written["text"])["status"] == "DOWN"
    assert front.lookup("echo")["note"] == "the index is being rebuilt"
    seen = viewer.call("tool_health_lookup", {"tool": "echo", "user": "alice"})
    assert json.loads(seen["text"])["scope"] == "PROJECT"

    tried = prober.call("tool_probe_as_system", {"tool": "echo"})
    assert json.loads(tried["text"]) == {"result": "works", "opened": 1}
    forbidden = viewer.call("tool_health_clear", {**PLACE, "reason": "x"})
    assert forbidden["isError"] and "does not have the role `tool-health-writer`" in forbidden["text"]
    cleared = engine.call("tool_health_clear", {**PLACE, "reason": "all is well"})
    assert json.loads(cleared["text"])["status"] == "OK"
    told = audited(front)
    assert (told["who"], told["done"]) == ("engine", False)
    assert told["what"].startswith("MCP tool_health_set_unavailable ")
