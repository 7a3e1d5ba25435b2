"""Real SDK clients, each in its own process, driven line by line (see `drivers/`)."""

import itertools
import json
import pathlib
import queue
import subprocess
import threading

from . import install

DRIVERS = pathlib.Path(__file__).resolve().parents[1] / "drivers"
ANSWERS_WITHIN_SECONDS = 60

# Name of a client as tests show it: which SDK, which era or transport it speaks.
EVERY = {
    "typescript-1": ("ts1", "legacy"),
    "typescript-2": ("ts2", "legacy"),
    "typescript-2-stateless": ("ts2", "modern"),
    "typescript-1-old": ("ts1", "old"),
    "python-1": ("py1", "legacy"),
    "python-1-old": ("py1", "old"),
    "python-2": ("py2", "legacy"),
    "python-2-stateless": ("py2", "modern"),
}
SESSIONS = [name for name, (_, era) in EVERY.items() if era == "legacy"]
STATELESS = [name for name, (_, era) in EVERY.items() if era == "modern"]
# Streamable HTTP, which is what servers of today offer.
CLIENTS = SESSIONS + STATELESS
# The HTTP+SSE transport of 2024-11-05.
OLD = [name for name, (_, era) in EVERY.items() if era == "old"]


def command(sdk):
    if sdk.startswith("ts"):
        return [install.node(), DRIVERS / "ts.mjs", f"v{sdk[-1]}"]
    return [install.python(int(sdk[-1])), DRIVERS / "py.py"]


class Client:
    """One client; its methods are the orders of the drivers, and `start_…` gives the answer later."""

    def __init__(self, name, log_folder):
        self.name = name
        self.sdk, self.era = EVERY[name]
        self._log = open(pathlib.Path(log_folder) / f"client-{name}-{id(self):x}.log", "w")
        self.process = subprocess.Popen(
            list(map(str, command(self.sdk))),
            cwd=install.NODE_MODULES.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._numbers, self._waiting, self._lock = itertools.count(1), {}, threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self._log.write(line)
            answer = json.loads(line)
            with self._lock:
                waiting = self._waiting.pop(answer.pop("n"), None)
            if waiting:
                waiting.put(answer)
        with self._lock:
            for waiting in self._waiting.values():
                waiting.put({"failed": {"type": "Gone", "code": None, "message": "the client's process ended"}})

    def order(self, order, **details):
        """Gives an order and returns how to get its answer."""
        number, waiting = next(self._numbers), queue.Queue()
        with self._lock:
            self._waiting[number] = waiting
            self.process.stdin.write(json.dumps({"n": number, "order": order, **details}) + "\n")
            self.process.stdin.flush()
        return lambda: waiting.get(timeout=ANSWERS_WITHIN_SECONDS)

    def connect(self, url, headers=None):
        return self.order("connect", url=url, era=self.era, headers=headers or {})()

    def call(self, tool, arguments=None, **details):
        return self.start_call(tool, arguments, **details)()

    def start_call(self, tool, arguments=None, **details):
        return self.order("call", name=tool, arguments=arguments or {}, **details)

    def cancel(self, tag):
        return self.order("cancel", tag=tag)()

    def tools(self):
        """The listed tools by name."""
        answer = self.order("list")()
        assert "tools" in answer, answer
        return {tool["name"]: tool for tool in answer["tools"]}

    def seen(self):
        return self.order("seen")()

    def close(self):
        return self.order("close")()

    def quit(self):
        """Ends the process, however the client is."""
        self.process.stdin.close()
        try:
            self.process.wait(3)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._log.close()
