"""`make run` starts what it says, the three things to try show what they promise, and Ctrl-C ends all of it."""

import os
import re
import signal
import subprocess
import threading

from harness import install
from harness.processes import eventually

ENDS_WITHIN_SECONDS = 10


class Run:
    """The script behind `make run`, in a terminal of its own as far as signals go."""

    def __init__(self, config):
        settings = {name: "127.0.0.1:0" for name in ("LISTEN", "ADMIN", "DEMO")}
        settings |= {f"{name.upper()}_BIN": str(config.getoption(name).absolute()) for name in ("toolvane", "demo")}
        self.process = subprocess.Popen(
            ["bash", "examples/demo_server/run.sh"],
            cwd=install.REPO,
            env={**os.environ, **settings},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            # A test run that was put into the background ignores Ctrl-C and would hand that down; a terminal does not.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self.lines = []
        self._reader = threading.Thread(target=lambda: self.lines.extend(self.process.stdout), daemon=True)
        self._reader.start()

    def words(self):
        return "".join(self.lines)

    def commands(self):
        """The commands that it suggests, in order."""
        eventually(
            lambda: "Ctrl-C ends" in self.words() or self.process.poll() is not None, 20, "the words of make run"
        )
        return re.findall(r"^       (\S.*)$", self.words(), re.MULTILINE)

    def ctrl_c(self):
        os.killpg(self.process.pid, signal.SIGINT)
        code = self.process.wait(ENDS_WITHIN_SECONDS)
        self._reader.join(ENDS_WITHIN_SECONDS)
        return code


def shell(command):
    done = subprocess.run(["bash", "-c", command], cwd=install.REPO, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_make_run_does_what_it_prints(request):
    run = Run(request.config)
    try:
        commands = run.commands()
        assert len(commands) == 3, run.words()
        broken, users, kill = commands

        answers = shell(broken).split("HTTP ")
        assert "corrupt header" in answers[0]
        assert "Search with echo instead." in answers[-2]

        alice, bob = shell(users).split("HTTP ")[:2]
        assert "expired_token" in alice and "bob has 2 new messages" in bob

        called, listed = shell(kill).split("HTTP ")[:2]
        assert "BACKEND_UNREACHABLE" in called
        assert '"name":"echo"' in listed
        eventually(lambda: "is back" in run.words(), 40, "the demo server to come back")
    finally:
        code = run.ctrl_c()
    assert code == 0, run.words()
    assert "stopping" in run.words()
    pid = re.search(r"is back \(process (\d+)\)", run.words())[1]
    eventually(lambda: not os.path.exists(f"/proc/{pid}"), ENDS_WITHIN_SECONDS, "the demo server to end")
