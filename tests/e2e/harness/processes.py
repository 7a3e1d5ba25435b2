"""Programs that the tests start: each says its address once it listens, writes a log, and is stopped whatever happens.

Nobody picks a port: every program binds port 0 and tells. A backend that must come back at the same address gets a loopback
address of its own (127.0.0.0/8 is large), so that nobody else can take its port meanwhile.
"""

import itertools
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

STARTS_WITHIN_SECONDS = 20
STOPS_WITHIN_SECONDS = 10
_numbers = itertools.count(1)


class Failed(AssertionError):
    """A program did not do what every test takes for granted."""


class Program:
    """A running program whose lines are kept; `urls` are those it has announced, by the words in front of them."""

    ADDRESS = re.compile(r"(?P<words>[a-z ]+?) on (?P<url>http://\S+)")

    def __init__(self, name, command, log_folder, cwd=None, env=None):
        self.name, self.command, self.cwd, self.env = name, list(map(str, command)), cwd, env
        self.log = pathlib.Path(log_folder) / f"{next(_numbers):03}-{name}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.urls, self.lines, self._news = {}, [], threading.Condition()
        self.process = subprocess.Popen(
            self.command,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        with self.log.open("w") as log:
            for line in self.process.stdout:
                log.write(line)
                log.flush()
                with self._news:
                    self.lines.append(line)
                    if found := self.ADDRESS.search(line):
                        self.urls.setdefault(found["words"].strip(), found["url"])
                    self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def url(self, words):
        """Waits until the program has said `<words> on http://…`."""
        with self._news:
            self._news.wait_for(lambda: words in self.urls or not self._reader.is_alive(), STARTS_WITHIN_SECONDS)
            if words in self.urls:
                return self.urls[words]
        raise Failed(f"{self.name} did not say `{words} on http://…`; it said:\n{''.join(self.lines[-40:])}")

    @property
    def running(self):
        return self.process.poll() is None

    def kill(self):
        """Ends the program as a crash would."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Asks the program to end and says how it did: its exit code."""
        if self.running:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOPS_WITHIN_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
                raise Failed(f"{self.name} did not end within {STOPS_WITHIN_SECONDS} s of SIGTERM; see {self.log}")
        return self.process.returncode


def eventually(check, within, what):
    """Polls `check` until it gives something true; `within` seconds is what a user may at most wait, times the slack."""
    deadline = time.monotonic() + within
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > deadline:
            raise Failed(f"not within {within} s: {what}")
        time.sleep(0.02)
