"""A real HTTP tool API behind toolvane: invisible while all is well, 503 with the reason while a tool is DOWN."""

import http.client
import json
import time
import urllib.parse

import pytest

from harness.processes import eventually

SLACK = 5
ROUTES = [
    {"tool": "get_item", "method": "GET", "path": "/v1/items/{id}"},
    {"tool": "create_item", "method": "POST", "path": "/v1/items"},
    {"tool": "get_report", "method": "GET", "path": "/v1/reports/{id}"},
]


class Api:
    """The items API and toolvane in front of it."""

    def __init__(self, workshop):
        self.program = workshop.items_api()
        self.direct = self.program.url("items api")
        backend = {"name": "items", "kind": "http", "url": self.direct, "routes": ROUTES}
        self.front = workshop.toolvane(self.direct, backends=[backend])

    def ask(self, method, path, base=None, user="bob", body=None):
        """One request; gives status, headers without the date, and body."""
        address = urllib.parse.urlsplit(base or self.front.url).netloc
        connection = http.client.HTTPConnection(address, timeout=10)
        connection.request(method, path, body, {"x-user-id": user, "content-type": "application/json"})
        answer = connection.getresponse()
        headers = sorted((name.lower(), value) for name, value in answer.getheaders() if name.lower() != "date")
        content = answer.read()
        connection.close()
        return answer.status, headers, content

    def arrived(self, path):
        return json.loads(self.ask("GET", "/control/stats", base=self.direct)[2]).get(path, 0)


@pytest.fixture
def api(workshop):
    return Api(workshop)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/items/1", None),
        ("HEAD", "/v1/items/1", None),
        ("GET", "/v1/items/a%2Fb?full=yes", None),
        ("POST", "/v1/items", '{"name": "chair"}'),
        ("GET", "/v1/reports/1", None),
        ("GET", "/v1/status", None),
        ("GET", "/elsewhere", None),
    ],
)
def test_an_answer_passes_as_it_is(api, method, path, body):
    assert api.ask(method, path, body=body) == api.ask(method, path, base=api.direct, body=body)


def test_a_broken_tool_is_answered_with_the_reason_and_not_called(api):
    def is_down():
        api.ask("GET", "/v1/reports/1")
        return api.front.troubles() == [("PROJECT", "get_report", "DOWN")]

    eventually(is_down, within=6 * SLACK, what="a tool that always fails to be DOWN")
    arrived = api.arrived("/v1/reports/1")
    status, headers, body = api.ask("GET", "/v1/reports/1")
    headers = dict(headers)
    assert status == 503
    assert headers["content-type"] == "application/problem+json"
    assert 1 <= int(headers["retry-after"]) <= 60
    assert "x-toolvane" in headers
    problem = json.loads(body)
    assert problem["code"] == "BACKEND_UNREACHABLE"
    assert "get_report" in problem["detail"] and "was not called" in problem["detail"]
    assert api.arrived("/v1/reports/1") == arrived
    assert api.ask("GET", "/v1/items/1")[0] == 200


def test_one_users_missing_permission_passes_and_changes_nothing(api):
    for _ in range(5):
        status, _, body = api.ask("GET", "/v1/items/secret", user="alice")
        assert status == 403 and b"alice may not" in body
    assert api.front.troubles() == []
    assert api.ask("GET", "/v1/items/secret")[0] == 200


def test_a_path_that_no_route_names_is_not_judged(api):
    for _ in range(10):
        assert api.ask("GET", "/v1/status")[0] == 500
    assert api.front.judged() == 0
    api.ask("GET", "/v1/items/1")
    eventually(lambda: api.front.judged() == 1, 1 * SLACK, "the call of a named route to be judged")


def test_a_killed_api_is_said_to_be_unreachable(api):
    api.program.kill()
    begun = time.monotonic()
    status, headers, body = api.ask("GET", "/v1/items/1")
    assert status in (502, 503, 504)
    assert time.monotonic() - begun < 1 * SLACK
    assert dict(headers)["content-type"] == "application/problem+json"
    assert json.loads(body)["code"] == "BACKEND_UNREACHABLE"
    eventually(lambda: ("PROJECT", "*", "DOWN") in api.front.troubles(), 2.5 * SLACK, "the backend to be DOWN")
    assert api.ask("GET", "/v1/items/1")[0] == 503
