"""The three problems that toolvane is for, with real clients: an unreachable tool is not an unknown one; "wait", "broken"
and "your fault" do not look alike; one user's trouble stays with that user.

Deadlines that users feel are asserted at five times the figure, so that a busy machine does not fail them.
"""

import concurrent.futures
import time

import pytest

from harness import measured
from harness.clients import CLIENTS, SESSIONS
from harness.processes import eventually

SLACK = 5
HEALTH = "toolvane/health"


def is_ours(answer):
    """Whether an answer is one that toolvane made: the shape that every client shows to its model."""
    return answer.get("isError") is True and HEALTH in (answer.get("meta") or {})


def timed(call):
    begun = time.monotonic()
    answer = call()
    return answer, time.monotonic() - begun


@pytest.mark.parametrize("name", CLIENTS)
def test_a_killed_backend_is_said_to_be_unreachable_until_it_is_back(workshop, name):
    demo = workshop.demo()
    front = workshop.toolvane(demo.url)
    client = workshop.client(name, front.url, user="alice")
    plain = client.tools()
    assert client.call("echo", {"text": "before"})["text"] == "before"

    demo.kill()
    killed_at = time.monotonic()
    answer, took = timed(lambda: client.call("echo", {"text": "lost"}))
    assert is_ours(answer), answer
    assert answer["meta"][HEALTH]["code"] == "BACKEND_UNREACHABLE"
    assert took < 1 * SLACK
    measured.note("the first call to a killed backend is answered", took, 1)

    front.wait_for("echo", "DOWN", within=2.5 * SLACK, user="alice")
    measured.note("a killed backend is DOWN", time.monotonic() - killed_at, 2.5)
    assert ("PROJECT", "*", "DOWN") in front.troubles()
    before = front.total("toolvane_short_circuits_total")
    # While it is DOWN a caller learns so at once; on a retest one call in between may be let through and find nobody.
    for _ in range(5):
        answer, took = timed(lambda: client.call("echo", {"text": "short"}))
        assert is_ours(answer), answer
        assert answer["meta"][HEALTH]["code"] == "BACKEND_UNREACHABLE"
        assert "unavailable" in answer["text"]
        assert took < 1 * SLACK
        measured.note("a call to a backend that is DOWN is answered", took, 1)
    assert front.total("toolvane_short_circuits_total") >= before + 4
    assert time.monotonic() - killed_at < 60, "the rest would test something else"

    listed = client.tools()
    assert list(listed) == list(plain)
    assert all("unavailable" in tool["description"] for tool in listed.values())
    assert all(listed[tool]["inputSchema"] == plain[tool]["inputSchema"] for tool in plain)

    demo.come_back()
    back_at = time.monotonic()

    def works_again():
        answer = client.call("echo", {"text": "again"})
        assert is_ours(answer) or answer.get("text") == "again", answer
        return not answer["isError"]

    eventually(works_again, within=3 * SLACK, what="a call to succeed after the backend is back")
    assert time.monotonic() - back_at < 3 * SLACK
    measured.note("a backend that came back is used again", time.monotonic() - back_at, 3)
    assert front.troubles() == []
    assert client.tools() == plain


def test_a_broken_tool_is_answered_without_touching_the_backend(workshop):
    demo = workshop.demo()
    front = workshop.toolvane(demo.url, tools={"broken": {"down_on_first_failure": True, "advice": "Use echo."}})
    client = workshop.client("typescript-2", front.url, user="alice")
    assert "corrupt header" in client.call("broken")["failed"]["message"]
    front.wait_for("broken", "DOWN", within=1 * SLACK)
    answers = [client.call("broken") for _ in range(10)]
    assert all(map(is_ours, answers)), answers
    # Nothing was asked of the backend, so its answer is not to be had: not the same as "it answered with an error".
    assert answers[0]["meta"][HEALTH]["code"] == "BACKEND_UNREACHABLE"
    assert answers[0]["meta"][HEALTH]["signature"].startswith("rpc")
    assert "was not called" in answers[0]["text"] and "Use echo." in answers[0]["text"]
    assert demo.arrived("broken") == 1
    assert client.call("echo", {"text": "others work"})["text"] == "others work"


@pytest.mark.parametrize("name", [*SESSIONS, "typescript-2-stateless"])
def test_a_client_that_listens_is_told_that_the_list_has_changed(workshop, name):
    demo = workshop.demo()
    front = workshop.toolvane(demo.url, tools={"broken": {"down_on_first_failure": True}})
    client = workshop.client(name, front.url, user="alice")
    listening = "subscriptions/listen" if client.era == "modern" else "GET"
    eventually(lambda: demo.stats()["methods"].get(listening, 0) > 0, 1 * SLACK, "the client's own stream to open")
    assert client.seen()["listChanged"] == 0
    client.call("broken")
    eventually(lambda: client.seen()["listChanged"] == 1, 1 * SLACK, "the client to hear of the change")
    assert "unavailable" in client.tools()["broken"]["description"]


def test_a_steady_failure_makes_down_and_is_not_confused_with_other_tools(workshop):
    demo = workshop.demo()
    front = workshop.toolvane(demo.url)
    client = workshop.client("typescript-2", front.url, user="alice")

    def fails_until_down():
        client.call("broken")
        return front.lookup("broken", user="alice")["status"] == "DOWN"

    begun = time.monotonic()
    eventually(fails_until_down, within=6 * SLACK, what="a tool that always fails to be DOWN")
    assert time.monotonic() - begun > 3, "failures in five distinct seconds are needed"
    assert front.troubles() == [("PROJECT", "broken", "DOWN")]


def test_one_blip_with_many_calls_in_flight_makes_nothing_down(workshop):
    demo = workshop.demo()
    front = workshop.toolvane(demo.url)
    client = workshop.client("typescript-2-stateless", front.url, user="alice")
    demo.fail("slow", "http-503", times=200)
    answers = [client.start_call("slow", {"delay_ms": 10}) for _ in range(200)]
    assert all("failed" in answer() for answer in answers)
    assert not any(status == "DOWN" for _, _, status in front.troubles())
    assert client.call("slow", {"delay_ms": 1})["text"] == "waited 1 ms"
    assert demo.arrived("slow") == 201


def test_a_fetch_tool_with_one_bad_target_stays_ok(workshop):
    demo = workshop.demo()
    front = workshop.toolvane(demo.url)
    client = workshop.client("typescript-2", front.url, user="alice")
    until = time.monotonic() + 8
    while time.monotonic() < until:
        assert client.call("fetch_url", {"url": "https://down.example/page"})["isError"]
        time.sleep(0.5)
    assert front.lookup("fetch_url", user="alice")["status"] == "OK"
    assert client.call("fetch_url", {"url": "https://up.example/"})["text"] == "200 OK from up.example"


@pytest.mark.parametrize("name", ["typescript-1", "python-2-stateless"])
def test_a_users_missing_permission_and_expired_token_change_nothing_for_another(workshop, name):
    demo = workshop.demo()
    front = workshop.toolvane(demo.url)
    alice = workshop.client(name, front.url, user="alice")
    bob = workshop.client(name, front.url, user="bob")
    plain = bob.tools()
    for _ in range(5):
        assert alice.call("needs_permission")["text"] == "403 Forbidden: user alice lacks the permission reports:read"
    assert front.lookup("needs_permission", user="alice")["status"] == "OK", "a missing permission is no outage"
    for _ in range(5):
        assert alice.call("expired_token")["isError"]
    for tool, answer in (("needs_permission", "bob may read 3 reports"), ("expired_token", "bob has 2 new messages")):
        assert front.lookup(tool, user="bob")["status"] == "OK"
        assert bob.call(tool)["text"] == answer
    assert bob.tools() == plain
    assert all(scope == "USER" for scope, _, _ in front.troubles())
    assert not any(tool == "needs_permission" for _, tool, _ in front.troubles())


@pytest.mark.parametrize("name", ["typescript-1", "typescript-2-stateless", "python-1"])
def test_bad_arguments_ten_times_change_nothing(workshop, name):
    demo = workshop.demo()
    front = workshop.toolvane(demo.url)
    client = workshop.client(name, front.url, user="alice")
    plain = client.tools()
    for seats in ["many", 40, None, -1, {}, "x", 10, 255, "9", []]:
        answer = client.call("bad_arguments", {"seats": seats, "class": "economy"})
        assert answer.get("isError") or "failed" in answer
        assert not is_ours(answer)
    assert front.troubles() == []
    assert client.tools() == plain
    assert client.call("bad_arguments", {"seats": 2, "class": "economy"})["text"] == "booked 2 seats, Economy"
    assert demo.arrived("bad_arguments") == 11


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_tool_whose_provider_left_is_unreachable_in_that_session_alone(workshop, name):
    demo = workshop.demo()
    front = workshop.toolvane(demo.url)
    mine = workshop.client(name, front.url, user="alice")
    other = workshop.client(name, front.url, user="alice")
    plain = mine.tools()
    read = {"path": "/etc/motd"}
    assert mine.call("client_file_read", read)["text"] == "contents of /etc/motd"

    mine.call("provider_leave")
    answer = mine.call("client_file_read", read)
    assert is_ours(answer), answer
    assert answer["meta"][HEALTH]["code"] == "BACKEND_UNREACHABLE"
    assert answer["meta"][HEALTH]["scope"] == "SESSION"
    assert "not found" not in answer["text"] and "unknown" not in answer["text"].lower()
    assert "unavailable" in mine.tools()["client_file_read"]["description"]

    assert other.call("client_file_read", read)["text"] == "contents of /etc/motd"
    assert other.tools() == plain

    mine.call("provider_return")

    def works_again():
        answer = mine.call("client_file_read", read)
        return answer.get("text") == "contents of /etc/motd"

    eventually(works_again, within=6 * SLACK, what="the tool to work after its provider's return")
    assert front.troubles() == []
    assert mine.tools() == plain


def test_of_fifty_callers_on_a_retesting_tool_exactly_one_reaches_the_backend(workshop):
    demo = workshop.demo()
    front = workshop.toolvane(demo.url, tools={"slow": {"down_on_first_failure": True}})
    names = ["typescript-1", "typescript-2", "typescript-2-stateless", "python-2", "python-2-stateless"]
    clients = [workshop.client(name, front.url, user=f"user-{n}") for n, name in enumerate(names)]
    demo.fail("slow", "rpc", times=1)
    assert "assertion failed" in clients[0].call("slow", {"delay_ms": 1})["failed"]["message"]
    front.wait_for("slow", "DOWN", within=1 * SLACK)
    front.wait_for("slow", "RETESTING", within=6 * SLACK)

    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda n: clients[n % 5].call("slow", {"delay_ms": 2_000}), range(50)))
    assert demo.arrived("slow") == 2, "the failure before, and one trial"
    assert sum(answer.get("text") == "waited 2000 ms" for answer in answers) == 1
    assert sum(map(is_ours, answers)) == 49
    assert front.troubles() == []


def test_a_trial_that_is_given_up_makes_room_for_the_next(workshop):
    demo = workshop.demo()
    front = workshop.toolvane(demo.url, tools={"slow": {"down_on_first_failure": True}})
    client = workshop.client("typescript-2-stateless", front.url, user="alice")
    demo.fail("slow", "rpc", times=1)
    client.call("slow", {"delay_ms": 1})
    front.wait_for("slow", "RETESTING", within=7 * SLACK)
    trial = client.start_call("slow", {"delay_ms": 30_000}, tag="trial")
    eventually(lambda: demo.arrived("slow") == 2, 1 * SLACK, "the trial to arrive")
    assert is_ours(client.call("slow", {"delay_ms": 1}))
    client.cancel("trial")
    assert "failed" in trial()
    eventually(
        lambda: client.call("slow", {"delay_ms": 1}).get("text") == "waited 1 ms",
        within=1 * SLACK,
        what="the next caller to be let through",
    )
    assert front.troubles() == []


def test_every_call_is_judged_and_counted_once_whatever_became_of_it(workshop):
    demo = workshop.demo()
    front = workshop.toolvane(demo.url, tools={"broken": {"down_on_first_failure": True}})
    client = workshop.client("typescript-2", front.url, user="alice")
    for tool, arguments in [
        ("echo", {"text": "x"}),
        ("progress", {"steps": 3}),
        ("bad_arguments", {"seats": "many", "class": "economy"}),
        ("rate_limited", {}),
        ("needs_permission", {}),
        ("broken", {}),
        ("broken", {}),
        ("no_such_tool", {}),
        ("fetch_url", {"url": "https://down.example/"}),
    ]:
        client.call(tool, arguments)
    arrived = sum(demo.stats()["calls"].values())
    assert arrived == 8, "the second call of the broken tool was answered by toolvane"
    eventually(lambda: front.judged() >= arrived, 1 * SLACK, "every call to be judged")
    assert front.judged() == arrived
    assert front.total("toolvane_short_circuits_total") == 1
    assert front.judged(outcome="success") == 2
    assert front.judged(tool="no_such_tool") == 0, "a hostile client must not make metric series"
