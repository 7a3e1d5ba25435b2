"""What operators meet: metrics that checkers accept, probes of the platform, a start without a file, a clean end."""

import subprocess

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from harness import install
from harness.processes import Program


def test_metrics_please_the_checkers(workshop):
    demo = workshop.demo()
    front = workshop.toolvane(demo.url, tools={"broken": {"down_on_first_failure": True}})
    client = workshop.client("typescript-2", front.url, user="alice")
    for tool in ("broken", "broken", "rate_limited", "needs_permission"):
        client.call(tool)
    client.call("echo", {"text": "x"})

    _, text = front.get("/metrics", accept="text/plain;version=0.0.4")
    checked = subprocess.run([install.promtool(), "check", "metrics"], input=text, capture_output=True, text=True)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")

    _, text = front.get("/metrics", accept="application/openmetrics-text;version=1.0.0")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert "toolvane_calls" in families
    labels = {key for family in families.values() for sample in family.samples for key in sample.labels}
    assert not labels & {"user", "session", "project", "tenant"}
    assert "alice" not in text


def test_the_platforms_probes_say_that_toolvane_can_answer_even_without_its_backend(workshop):
    front = workshop.toolvane("http://127.0.0.9:9/mcp")
    assert {path: front.get(path)[0] for path in ("/livez", "/readyz", "/startupz")} == {
        "/livez": 200,
        "/readyz": 200,
        "/startupz": 200,
    }


def test_it_runs_without_a_file_and_ends_cleanly(workshop):
    demo = workshop.demo()
    binary = workshop.config.getoption("toolvane")
    command = [binary, "run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--backend", demo.url]
    program = Program("toolvane", command, workshop.folder, cwd=workshop.folder)
    try:
        client = workshop.client("python-1", program.url("listening") + "/mcp")
        assert client.call("echo", {"text": "no file"})["text"] == "no file"
        assert client.close() == {}
    finally:
        ended = program.stop()
    assert ended == 0
