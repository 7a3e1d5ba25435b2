"""The official conformance suite gives the same result through toolvane as directly, in both eras."""

import collections
import json
import re
import subprocess

import pytest

from harness import install

SUITE = install.NODE_MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
# Scenarios that the suite scores for each revision, and the server passes all of.
REQUIRED = {"2025-11-25": 30, "2026-07-28": 37}
STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")


def run_suite(url, revision, output):
    """Runs the suite; gives what each check of each scenario came to, and what the suite said."""
    command = [install.node(), SUITE, "server", "--url", url, "--requirements", revision, "-o", output]
    said = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    results = {}
    for file in output.glob("*/checks.json"):
        scenario = STAMP.sub("", file.parent.name).removeprefix("server-")
        checks = collections.Counter((check["id"], check["status"]) for check in json.loads(file.read_text()))
        results[scenario] = sorted(f"{name} {status} x{times}" for (name, status), times in checks.items())
    return said.returncode, results, said.stdout + said.stderr


@pytest.mark.parametrize("revision", REQUIRED)
def test_the_suite_sees_no_difference(workshop, revision, tmp_path):
    server = workshop.conformance_server().url("conformance server")
    code, direct, said = run_suite(server, revision, tmp_path / "direct")
    assert code == 0, said
    required = re.findall(r"^✓ (\S+): ", said.split("=== SUMMARY ===")[1].split("Not scored")[0], re.MULTILINE)
    assert len(required) >= REQUIRED[revision], said

    front = workshop.toolvane(server, tools={"unused_and_broken": {"down_on_first_failure": True}})
    workshop.client("typescript-2-stateless", front.url).call("unused_and_broken")
    front.wait_for("unused_and_broken", "DOWN", within=5)

    code, through, said = run_suite(front.url, revision, tmp_path / "through")
    assert code == 0, said
    assert through == direct
    assert front.troubles() == [("PROJECT", "unused_and_broken", "DOWN")]
    assert front.judged() > 1
