"""Each official SDK client does everything it can do, and toolvane is not noticed, though everything is on.

The same facts are asserted directly and through toolvane: rules loaded, another tool of the backend DOWN, metrics being
scraped all the while. A pipe that judges nothing would fail the last test of each row.
"""

import threading
import time

import pytest

from harness import measured
from harness.clients import CLIENTS
from harness.processes import eventually

ROWS = [(client, via) for client in CLIENTS for via in ("direct", "toolvane")]
ALL_TOOLS = {
    *("ask", "bad_arguments", "broken", "client_file_read", "echo", "expired_token", "fetch_url", "flaky"),
    *("needs_permission", "progress", "provider_leave", "provider_return", "rate_limited", "slow"),
}
# A backend hears of a cancelled call within this many seconds; tests on a busy machine allow five times that.
ABORT_FIGURE = 0.1
SLACK = 5


class Stage:
    """A client in front of the demo server, perhaps with toolvane between them."""

    def __init__(self, workshop, client, via):
        self.demo = workshop.demo()
        self.front = None
        url = self.demo.url
        if via == "toolvane":
            self.front = workshop.toolvane(url, tools={"broken": {"down_on_first_failure": True}})
            url = self.front.url
            other = workshop.client("typescript-2-stateless", url, user="somebody-else")
            assert "cannot open the index" in other.call("broken")["failed"]["message"]
            self.front.wait_for("broken", "DOWN", within=5)
            threading.Thread(target=self._scrape, daemon=True).start()
        self.client = workshop.client(client)
        self.sessions = self.client.era == "legacy"
        self.connected = self.client.connect(url, {"x-user-id": "alice"})
        self.scraping = True

    def _scrape(self):
        while self.front.program.running:
            try:
                self.front.get("/metrics", accept="application/openmetrics-text")
            except OSError:
                return
            time.sleep(0.1)


@pytest.fixture(scope="class")
def stage(class_workshop, row):
    return Stage(class_workshop, *row)


@pytest.mark.parametrize("row", ROWS, ids=["-".join(row) for row in ROWS], scope="class")
class TestAClient:
    def test_opens_with_its_newest_revision(self, stage):
        revision = "2025-11-25" if stage.sessions else "2026-07-28"
        assert (stage.connected["server"], stage.connected["version"]) == ("toolvane-demo", revision)
        opened = "initialize" if stage.sessions else "server/discover"
        assert stage.demo.stats()["methods"][opened] >= 1

    def test_lists_every_page(self, stage):
        tools = stage.client.tools()
        assert set(tools) == ALL_TOOLS
        assert stage.demo.stats()["methods"]["tools/list"] >= 3
        annotated = [name for name, tool in tools.items() if "unavailable" in tool["description"]]
        assert annotated == (["broken"] if stage.front else [])

    def test_calls_a_tool(self, stage):
        answer = stage.client.call("echo", {"text": "grüße 🙂 \u2028 9007199254740993"})
        assert answer == {"isError": False, "text": "grüße 🙂 \u2028 9007199254740993", "meta": None, "progress": []}

    def test_hears_of_progress_while_the_call_runs(self, stage):
        answer = stage.client.call("progress", {"steps": 5})
        assert (answer["text"], answer["progress"]) == ("5 steps done", [1, 2, 3, 4, 5])

    def test_is_asked_while_the_call_runs(self, stage):
        assert stage.client.call("ask")["text"] == "hello Ada"
        assert stage.client.seen()["asked"] == 1

    def test_gets_a_tools_own_error_unchanged(self, stage):
        answer = stage.client.call("bad_arguments", {"seats": 40, "class": "economy"})
        assert answer["isError"]
        assert answer["text"] == "Input validation error: seats must be between 1 and 9, got 40"

    def test_gets_a_protocol_error_unchanged(self, stage):
        failed = stage.client.call("flaky", {"fail": 1, "of": 2})["failed"]
        assert failed["code"] == -32603
        assert "search cluster lost a shard" in failed["message"]
        assert stage.client.call("flaky", {"fail": 1, "of": 2})["text"] == "this one worked"

    def test_cancels_a_call_and_the_backend_hears_it_at_once(self, stage):
        before = stage.demo.stats()["cancelled"].get("slow", 0)
        arrived = stage.demo.arrived("slow")
        answer = stage.client.start_call("slow", {"delay_ms": 30_000}, tag="given up")
        eventually(lambda: stage.demo.arrived("slow") > arrived, 5, "the call arrives")
        begun = time.monotonic()
        stage.client.cancel("given up")
        eventually(lambda: stage.demo.stats()["cancelled"].get("slow", 0) > before, SLACK * ABORT_FIGURE, "an abort")
        if stage.front:
            measured.note("a cancelled call is known to the backend", time.monotonic() - begun, ABORT_FIGURE)
        assert "failed" in answer()

    def test_goes_on_after_it_cancelled(self, stage):
        assert stage.client.call("echo", {"text": "still here"})["text"] == "still here"

    def test_resumes_a_stream_that_the_server_closed(self, stage):
        if not stage.sessions:
            pytest.skip("2026-07-28 has no resumption")
        stage.demo.fail("slow", "cut", times=1)
        assert stage.client.call("slow", {"delay_ms": 500})["text"] == "waited 500 ms"
        assert stage.demo.stats()["methods"]["GET to resume"] >= 1

    def test_runs_calls_side_by_side(self, stage):
        begun = time.monotonic()
        answers = [stage.client.start_call("slow", {"delay_ms": 400 + n}) for n in range(20)]
        assert [answer()["text"] for answer in answers] == [f"waited {400 + n} ms" for n in range(20)]
        assert time.monotonic() - begun < 20 * 0.4

    def test_ends_its_session(self, stage):
        assert stage.client.close() == {}
        ended = stage.demo.stats()["methods"].get("DELETE", 0)
        assert ended == (1 if stage.sessions else 0)

    def test_had_each_call_judged_once(self, stage):
        if not stage.front:
            pytest.skip("nobody judges without toolvane")
        arrived = sum(stage.demo.stats()["calls"].values())
        eventually(lambda: stage.front.judged() >= arrived, 2, "every call to be judged")
        assert stage.front.judged() == arrived
        assert stage.front.troubles() == [("PROJECT", "broken", "DOWN")]
