"""toolvane as its users meet it: a binary, a config file, and what the admin listener says."""

import itertools
import json
import pathlib
import re
import urllib.error
import urllib.parse
import urllib.request

from .processes import Program, eventually

NUMBERS = itertools.count(1)
METRIC = re.compile(r"^(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)", re.MULTILINE)
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Toolvane:
    """A running toolvane in front of one MCP backend."""

    def __init__(self, binary, backend_url, folder, **config):
        self.folder = pathlib.Path(folder)
        self.config = self.folder / "toolvane.yaml"
        self.config.write_text(json.dumps(self._config(backend_url, config), indent=2))  # JSON is YAML
        self.program = Program("toolvane", [binary, "run", "-c", self.config], self.folder)
        path = urllib.parse.urlsplit(backend_url).path
        self.url = self.program.url("listening") + path
        self.admin = self.program.url("admin")

    def _config(self, backend_url, config):
        return {
            "listen": "127.0.0.1:0",
            "admin": {"listen": "127.0.0.1:0"},
            "backends": [{"name": "backend", "kind": "mcp", "url": backend_url}],
            "store": {"path": str(self.folder / f"toolvane-{next(NUMBERS)}.redb")},
            "drain_announce": "0s",
            **config,
        }

    def get(self, path, accept="application/json", **query):
        """Reads a path of the admin listener; gives the status and the text."""
        url = f"{self.admin}{path}"
        if query:
            url += f"?{urllib.parse.urlencode({key: value for key, value in query.items() if value is not None})}"
        request = urllib.request.Request(url, headers={"accept": accept})
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def get_json(self, path, **query):
        status, text = self.get(path, **query)
        assert status == 200, f"GET {path} {query}: {status} {text}"
        return json.loads(text)

    def documents(self):
        """All health documents."""
        return self.get_json("/v1/health")["documents"]

    def troubles(self):
        """What is not OK: (scope, tool, status) of every such document."""
        return sorted((d["scope"], d["toolName"], d["status"]) for d in self.documents() if d["status"] != "OK")

    def lookup(self, tool, **caller):
        """What this caller would be told about the tool now."""
        return self.get_json("/v1/lookup", tool=tool, **caller)

    def metrics(self, name):
        """The series of one metric: labels and value."""
        _, text = self.get("/metrics", accept="text/plain")
        found = (match for match in METRIC.finditer(text) if match["name"] == name)
        return [(dict(LABEL.findall(match["labels"] or "")), float(match["value"])) for match in found]

    def total(self, name, **labels):
        """The sum over the series of a metric that carry these labels."""
        series = self.metrics(name)
        return sum(value for has, value in series if all(has.get(key) == wanted for key, wanted in labels.items()))

    def judged(self, **labels):
        """How many calls have been judged; recorded at the end of an answer, so it may lag behind it by a moment."""
        return int(self.total("toolvane_calls_total", **labels))

    def wait_for(self, tool, status, within, **caller):
        """Waits until the cascade gives this status (OK, DEGRADED, DOWN, RETESTING) to this caller."""

        def reached():
            found = self.lookup(tool, **caller)
            return found["retesting"] if status == "RETESTING" else found["status"] == status

        return eventually(reached, within, f"{tool} to be {status} for {caller or 'anybody'}")

    def stop(self):
        """Drains and ends; must end cleanly."""
        assert self.program.stop() == 0, (
            f"toolvane ended with {self.program.process.returncode}; see {self.program.log}"
        )
