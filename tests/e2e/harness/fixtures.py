"""Fixtures: a folder for logs, a backend, toolvane in front of it or not, real clients. All is stopped at the end."""

import contextlib
import pathlib
import re

import pytest

from . import backends, install, measured
from .clients import Client
from .service import Service
from .toolvane import Toolvane

TARGET = install.REPO / "target" / "debug"


def pytest_addoption(parser):
    group = parser.getgroup("toolvane")
    group.addoption("--toolvane", default=TARGET / "toolvane", type=pathlib.Path, help="the binary to test")
    group.addoption("--demo", default=TARGET / "examples" / "demo_server", type=pathlib.Path, help="the demo server")
    group.addoption("--via", choices=["direct", "toolvane", "both"], default="both", help="skip the half of the tests")
    group.addoption("--long", action="store_true", help="run the tests marked long, and only those")


def pytest_configure(config):
    for name in ("toolvane", "demo"):
        binary = config.getoption(name)
        if not binary.exists() and not (name == "toolvane" and config.getoption("via") == "direct"):
            raise pytest.UsageError(f"{binary} is missing: `cargo build --bin toolvane --example demo_server` makes it")


def pytest_collection_modifyitems(config, items):
    """Takes `--long` and `--via` (for whoever works on the harness itself); what is left out is counted as deselected."""
    long, via = config.getoption("long"), config.getoption("via")

    def is_wanted(item):
        direct = "direct" in item.callspec.params.get("row", ()) if hasattr(item, "callspec") else False
        of_this_half = via == "both" or direct == (via == "direct")
        return of_this_half and long == (item.get_closest_marker("long") is not None)

    kept = [item for item in items if is_wanted(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def pytest_terminal_summary(terminalreporter):
    taken = list(measured.lines())
    if taken:
        terminalreporter.section("measured, on a machine that runs the tests")
        for line in taken:
            terminalreporter.write_line(line)


class Workshop:
    """Makes what a test needs and takes it apart again, last made first."""

    def __init__(self, config, folder):
        self.config, self.folder = config, folder
        self._stack = contextlib.ExitStack()

    def demo(self):
        return self._keep(backends.Demo(self.config.getoption("demo"), self.folder))

    def conformance_server(self):
        return self._keep(backends.conformance(self.folder))

    def everything_server(self, transport="streamableHttp"):
        return self._keep(backends.everything(self.folder, transport))

    def items_api(self):
        return self._keep(backends.items_api(self.folder))

    def toolvane(self, backend_url, **config):
        return self._keep(Toolvane(self.config.getoption("toolvane"), backend_url, self.folder, **config))

    def client(self, name, url=None, user=None, headers=None):
        """A client of that name; connected if there is a URL."""
        client = Client(name, self.folder)
        self._stack.callback(client.quit)
        if url:
            headers = {**(headers or {}), **({"x-user-id": user} if user else {})}
            answer = client.connect(url, headers)
            assert "failed" not in answer, answer
        return client

    def _keep(self, made):
        self._stack.callback(made.stop)
        return made

    def close(self):
        self._stack.close()


def folder_of(request, *row):
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join([request.node.nodeid, *row])).strip("-")
    folder = install.CACHE / "logs" / name
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.redb*"):
        old.unlink()
    return folder


@pytest.fixture
def workshop(request):
    made = Workshop(request.config, folder_of(request))
    yield made
    made.close()


@pytest.fixture
def service():
    made = Service()
    yield made
    made.stop()


@pytest.fixture(scope="class")
def class_workshop(request, row):
    """For the rows of a class: made anew for each row."""
    made = Workshop(request.config, folder_of(request, *row))
    yield made
    made.close()
