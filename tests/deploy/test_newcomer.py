"""The path of a newcomer: the blocks of README and getting-started are run as they stand, on addresses of their own."""

import itertools
import os
import re
import signal
import subprocess

import pytest
from harness.processes import Program, eventually
from test_docs import BLOCK, DOCS, REPO

README = REPO / "README.md"
START = DOCS / "getting-started.md"
# Lines that are not run here, and why not.
ELSEWHERE = {
    "make run": "tests/e2e/test_run.py runs it and what it prints",
    "make test": "this is part of it",
    "cargo install --path .": "the binary is built already",
}
_addresses = itertools.count(1)


@pytest.fixture
def place(request, tmp_path):
    """A folder with `toolvane` on the path, and a demo server where the documents say that one is, but for the address."""
    address = f"127.0.7.{next(_addresses)}"
    binaries = tmp_path / "bin"
    binaries.mkdir()
    (binaries / "toolvane").symlink_to(request.config.getoption("toolvane").absolute())
    demo = Program("demo", [request.config.getoption("demo").absolute(), "--listen", f"{address}:9000"], tmp_path)
    demo.url("demo server")
    yield Place(tmp_path, address, binaries)
    demo.stop()


class Place:
    def __init__(self, folder, address, binaries):
        self.folder, self.address = folder, address
        self.environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}"}

    def here(self, text):
        return text.replace("127.0.0.1", self.address)

    def shell(self, script, ok=0):
        script = f"set -euo pipefail\nset -m\n{self.here(script)}"
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=120,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == ok, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def run_until_ready(self, line):
        """A line that runs toolvane in the foreground: it becomes ready, and ends with 0 when told to."""
        command = self.here(line).split()
        program = Program("toolvane", command, self.folder, cwd=self.folder, env=self.environment)
        try:
            admin = program.url("admin").removeprefix("http://")
            eventually(lambda: self.healthy(admin), 20, "readiness")
        finally:
            program.process.send_signal(signal.SIGTERM)
            assert program.process.wait(20) == 0, program.lines

    def healthy(self, admin):
        command = ["toolvane", "healthcheck", "--admin", admin]
        return subprocess.run(command, env=self.environment, capture_output=True).returncode == 0


def test_every_block_of_the_readme_does_what_it_should(place):
    ran = 0
    # What the page says that one has by then.
    cases = '{cases: [{status: 403, body: "books are closed", expect: {rule: books-closed, scope: PROJECT}}]}'
    (place.folder / "cases.yaml").write_text(cases)
    (place.folder / "outcomes.jsonl").write_text("")
    for language, text in BLOCK.findall(README.read_text()):
        assert language in ("sh", "yaml", ""), language
        if language == "yaml":
            if "\npatterns:" in text:
                (place.folder / "own.yaml").write_text(text)
                place.shell("toolvane check own.yaml")
                ran += 1
                continue
            # The page shows one file after the other under the same name; the listeners are those of the flags.
            listeners = "listen: 127.0.0.1:8080\nadmin: {listen: 127.0.0.1:9090}\n"
            (place.folder / "toolvane.yaml").write_text(place.here(text + listeners))
            place.shell("toolvane check toolvane.yaml")
            ran += 1
        for line in text.splitlines() if language == "sh" else []:
            line = line.split("#")[0].strip()
            if not line or line in ELSEWHERE:
                continue
            if line.startswith("toolvane run"):
                place.run_until_ready(line)
            else:
                place.shell(line)
            ran += 1
    assert ran >= 5


def test_getting_started_goes_as_it_is_written(place):
    script = []
    for language, text in BLOCK.findall(START.read_text()):
        if language == "yaml":
            (place.folder / "toolvane.yaml").write_text(place.here(text))
        else:
            assert language == "sh"
            # A person types the next line when the last one has done its work.
            ready = "until toolvane healthcheck --admin 127.0.0.1:9090 2>/dev/null; do sleep 0.1; done"
            script.append(re.sub(r"^(toolvane run .*&)$", rf"\1\n{ready}", text, flags=re.MULTILINE))
    said = place.shell("\n".join(script))
    # What the page promises.
    assert "broken is temporarily unavailable (BACKEND_UNREACHABLE since" in said
    assert "Use echo instead." in said
    assert '"text":"hello"' in said
    assert '"status":"DOWN"' in said
    assert 'toolvane_tool_state{backend="demo",tool="broken",state="down"} 1' in said
    assert (place.folder / "toolvane.redb").exists()
