"""What to put behind toolvane: the demo server of this repo, the suite's fixtures, server-everything, a plain HTTP API."""

import itertools
import json
import pathlib
import urllib.parse
import urllib.request

from . import install
from .processes import Program

SERVERS = pathlib.Path(__file__).resolve().parents[1] / "servers"
_addresses = itertools.count(11)


class Demo:
    """The demo server: it counts what arrives, fails on order, and comes back at its address with its sessions."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.program = self._start(f"127.0.0.{next(_addresses) % 200 + 11}:0")
        self.url = self.program.url("demo server")
        self.control = self.url.removesuffix("/mcp") + "/control"

    def _start(self, listen):
        command = [self.binary, "--listen", listen, "--sessions", self.folder / "sessions"]
        return Program("demo", command, self.folder)

    def kill(self):
        self.program.kill()

    def come_back(self):
        """Starts the server again where it was; its counts begin at zero."""
        self.program = self._start(urllib.parse.urlsplit(self.url).netloc)
        self.program.url("demo server")

    def stats(self):
        with urllib.request.urlopen(f"{self.control}/stats", timeout=5) as answer:
            return json.load(answer)

    def arrived(self, tool):
        """How many calls of the tool have reached the server."""
        return self.stats()["calls"].get(tool, 0)

    def fail(self, tool, mode, times=None):
        query = {"tool": tool, "mode": mode, **({"times": times} if times is not None else {})}
        urllib.request.urlopen(f"{self.control}/fail?{urllib.parse.urlencode(query)}", timeout=5).close()

    def stop(self):
        self.program.stop()


def conformance(folder):
    return Program("conformance-server", [install.python(2), SERVERS / "conformance_server.py"], folder)


def items_api(folder):
    return Program("items-api", [install.python(2), SERVERS / "items_api.py"], folder)


def everything(folder, transport):
    package = install.NODE_MODULES / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
    command = [install.node(), "--import", SERVERS / "announce.mjs", package, transport]
    return Program("server-everything", command, folder, cwd=install.NODE_MODULES.parent, env={"PORT": "0"})
