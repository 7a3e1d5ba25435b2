"""What docs/outputs.md shows is what the commands print. `WRITE_OUTPUTS=1` writes what they print into the page instead."""

import json
import os
import re
import subprocess
import urllib.request

from harness.processes import Program, eventually
from test_docs import DOCS
from test_newcomer import place  # noqa: F401  (a fixture)

PAGE = DOCS / "outputs.md"
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^```yaml\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Commands that the page need not show, and why.
ELSEWHERE = {
    "run": "it serves; README and getting-started are run by tests",
    "top": "a live view; its tests keep pictures of it",
    "man": "the manual page is the help of all commands",
    "completions": "for a shell to read",
    "help": "the reference of commands is made of it",
}
# What differs from one run to the next, and what it is compared as.
VARIES = [
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "<moment>"),
    (re.compile(r"\d\d:\d\d UTC"), "<moment>"),
    (re.compile(r"127\.0\.\d+\.\d+:\d+"), "<address>"),
    (re.compile(r'"(hash|id)": ?"?[0-9a-f-]+"?'), r'"\1": <varies>'),
    (re.compile(r'"lastedMs": \d+'), '"lastedMs": <varies>'),
]


def test_the_commands_print_what_the_page_shows(place):  # noqa: F811
    page = PAGE.read_text()
    for name, text in FILE.findall(page):
        (place.folder / name).write_text(place.here(text))
    place.environment["TOOLVANE_ADMIN"] = f"{place.address}:9090"
    before, *running = CONSOLE.findall(page)
    written = {before: played(place, before)}
    command = ["toolvane", "run", "-c", "toolvane.yaml"]
    program = Program("toolvane", command, place.folder, cwd=place.folder, env=place.environment)
    try:
        program.url("admin")
        eventually(lambda: place.healthy(f"{place.address}:9090"), 20, "readiness")
        call(place, "tools/list")
        call(place, "tools/call", "broken")
        recorded = place.folder / "outcomes.jsonl"
        eventually(lambda: recorded.exists() and recorded.read_text(), 20, "the outcome is recorded")
        written |= {block: played(place, block) for block in running}
    finally:
        program.stop()
    if os.environ.get("WRITE_OUTPUTS"):
        for block, text in written.items():
            page = page.replace(f"```console\n{block}```", f"```console\n{text}```")
        PAGE.write_text(page)


def test_every_command_is_on_the_page(place):  # noqa: F811
    commands = re.findall(r"^  ([a-z]+)  ", place.shell("toolvane --help"), re.MULTILINE)
    assert len(commands) > 10
    shown = [line for block in CONSOLE.findall(PAGE.read_text()) for line in block.splitlines() if line.startswith("$ ")]
    for command in set(commands) - set(ELSEWHERE):
        lines = [line for line in shown if re.search(rf"toolvane {command}\b", line)]
        assert lines, f"{command} is not on the page"
        if "--output" in place.shell(f"toolvane {command} --help"):
            assert any("-o json" in line for line in lines), f"{command} is not shown with -o json"


def call(place, method, tool=None):  # noqa: F811
    """One request as a client of 2026-07-28 makes it."""
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    named = {"name": tool, "arguments": {}} if tool else {}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**named, "_meta": meta}}
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        **({"mcp-name": tool} if tool else {}),
    }
    request = urllib.request.Request(f"http://{place.address}:8080/mcp", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        answer.read()


def played(place, block):  # noqa: F811
    """The block with what its commands really print; fails where the page says something else."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)[1:]
    text = ""
    for command, shown in zip(parts[::2], parts[1::2], strict=True):
        printed = said(place, command)
        if not matches(shown.splitlines(), printed.splitlines()):
            assert os.environ.get("WRITE_OUTPUTS"), f"$ {command}\n{printed}\nbut {PAGE.name} shows\n{shown}"
            shown = printed
        text += f"$ {command}\n{shown}"
    return text


def said(place, command):  # noqa: F811
    done = subprocess.run(
        ["bash", "-c", place.here(command)], cwd=place.folder, env=place.environment, capture_output=True, text=True,
        timeout=30,
    )
    if "-o json" in command or "classify" in command:
        text = "".join(json.dumps(value, indent=2, ensure_ascii=False) + "\n" for value in values(done.stdout))
    else:
        text = done.stdout + done.stderr
    return text.replace(place.address, "127.0.0.1")


def values(text):
    """The JSON values of a text, one after the other."""
    decoder, text = json.JSONDecoder(), text.strip()
    while text:
        value, end = decoder.raw_decode(text)
        yield value
        text = text[end:].lstrip()


def matches(shown, printed):
    """Whether the lines are these, where a line `…` stands for any number of them."""
    if not shown:
        return not printed
    if shown[0].strip() == "…":
        return any(matches(shown[1:], printed[at:]) for at in range(len(printed) + 1))
    return bool(printed) and alike(shown[0]) == alike(printed[0]) and matches(shown[1:], printed[1:])


def alike(line):
    for pattern, name in VARIES:
        line = pattern.sub(name, line)
    return re.sub(r"\s+", " ", line).strip()
