"""The clients that keep sessions work with `@modelcontextprotocol/server-everything`, directly and through toolvane alike.

Those named `old` speak the HTTP+SSE transport of 2024-11-05, where every answer comes on the session's one stream.
"""

import time

import pytest

from harness.clients import OLD, SESSIONS
from harness.processes import eventually

ROWS = [(client, via) for client in SESSIONS + OLD for via in ("direct", "toolvane")]


class Stage:
    """A client in front of server-everything, perhaps with toolvane between them; counts the calls that it makes."""

    def __init__(self, workshop, name, via):
        transport, path = ("sse", "/sse") if name in OLD else ("streamableHttp", "/mcp")
        url = workshop.everything_server(transport).url("node server") + path
        self.front = workshop.toolvane(url) if via == "toolvane" else None
        self.client = workshop.client(name, self.front.url if self.front else url)
        self.calls = 0

    def call(self, tool, arguments=None, **details):
        self.calls += 1
        return self.client.call(tool, arguments, **details)


@pytest.fixture(scope="class")
def stage(class_workshop, row):
    return Stage(class_workshop, *row)


@pytest.mark.parametrize("row", ROWS, ids=["-".join(row) for row in ROWS], scope="class")
class TestServerEverything:
    def test_lists_its_tools_as_they_are(self, stage):
        tools = stage.client.tools()
        assert {"echo", "get-sum", "trigger-long-running-operation", "trigger-elicitation-request"} <= set(tools)
        assert tools["echo"]["description"] == "Echoes back the input string"

    def test_answers_calls(self, stage):
        assert stage.call("echo", {"message": "hello"})["text"] == "Echo: hello"
        assert "5" in stage.call("get-sum", {"a": 2, "b": 3})["text"]

    def test_reports_progress(self, stage):
        answer = stage.call("trigger-long-running-operation", {"duration": 0.5, "steps": 5})
        assert answer["text"].startswith("Long running operation completed")
        # The last note and the answer race inside the 1.x clients, with and without toolvane.
        assert answer["progress"][:4] == [1, 2, 3, 4]

    def test_asks_its_user(self, stage):
        assert "accept" in stage.call("trigger-elicitation-request")["text"].lower()
        assert stage.client.seen()["asked"] == 1

    def test_refuses_wrong_arguments_in_its_own_words(self, stage):
        answer = stage.call("get-sum", {"a": "two", "b": 3})
        assert answer["isError"] and "Input validation error" in answer["text"]

    def test_cancels_and_goes_on(self, stage):
        answer = stage.client.start_call("trigger-long-running-operation", {"duration": 1, "steps": 1}, tag="given up")
        stage.calls += 1
        time.sleep(0.2)  # so that the call is under way; nothing depends on how far it got
        stage.client.cancel("given up")
        assert "failed" in answer()
        assert stage.call("echo", {"message": "still here"})["text"] == "Echo: still here"

    def test_ends_its_session(self, stage):
        assert stage.client.close() == {}

    def test_had_each_call_judged_once(self, stage):
        if not stage.front:
            pytest.skip("nobody judges without toolvane")
        eventually(lambda: stage.front.judged() >= stage.calls, 5, "every call to be judged")
        assert stage.front.judged() == stage.calls
        assert stage.front.troubles() == []
