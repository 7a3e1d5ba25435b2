#!/usr/bin/env python3
"""Records what real servers, SDKs and libraries answer when they fail, into `../recorded.jsonl`.

    python3 tests/e2e/run.py --install        # the SDKs, once
    python3 tests/cases/record/record.py      # needs node, nginx, haproxy and openssl; Flask for the interpreter that runs it

Each case is in the form that `toolvane classify` reads, with `origin` (what was run, in which version, and how it was made to
fail) and `expect`. Ports, process ids and temporary paths are replaced, so that a second run gives the same file unless what
is recorded has changed.
"""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import stand_in

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parents[2]
CACHE = REPO / ".cache" / "e2e"
NODE_MODULES = CACHE / "node" / "node_modules"
BODY_MAX = 2000
PROTOCOL = "2025-06-18"
FAULTS, CALLERS = stand_in.FAULTS, stand_in.CALLERS
INPUT = (["USER_INPUT"], FAULTS)
UNKNOWN_TOOL = (["USER_INPUT"], FAULTS, "NOT_REGISTERED")
WORKING = (["WORKING"], [*FAULTS, "USER_SPECIFIC_TECHNICAL"])
SERVERS_OWN = (["TECHNICALLY_BROKEN", None], ["USER_INPUT"])
UNCONFIGURED = (["TECHNICALLY_BROKEN"], ["USER_INPUT", "USER_SPECIFIC_TECHNICAL"])
HIDDEN = ([None], [*FAULTS, *CALLERS])
LOCKED = (["INTERMITTENT", None], CALLERS)


class Recorder:
    def __init__(self, folder):
        self.folder, self.cases = folder, []

    def keep(self, name, origin, call, right, harm=(), code=None):
        """Adds a case: `call` is the case without its labels."""
        expect = {"classification": right, "must_not": list(harm)}
        if code:
            expect["dispatch_code"] = code
        line = json.dumps({"id": name, "origin": origin, **call, "expect": expect}, ensure_ascii=False)
        self.cases.append(self.neutral(line))

    def neutral(self, line):
        line = line.replace(str(self.folder), "/tmp/recorded")
        for place, stands in ((str(CACHE), "/opt"), (str(REPO), "/srv"), (os.path.expanduser("~"), "/home/user")):
            line = line.replace(place, stands)
        line = re.sub(r"(127\.0\.0\.1|localhost)([:', (]{1,4}(?:port )?)\d{4,5}", r"\g<1>\g<2>8080", line)
        line = re.sub(r"0x[0-9a-f]{8,}", "0x7f0000000000", line)
        line = re.sub(r"(?i)(date\": \")[^\"]+", r"\g<1>Mon, 02 Mar 2026 10:00:00 GMT", line)
        return re.sub(r"mcp-session-id\": \"[^\"]+", 'mcp-session-id": "00000000', line)

    def write(self):
        target = HERE.parent / "recorded.jsonl"
        target.write_text("".join(f"{line}\n" for line in self.cases), encoding="utf-8")
        print(f"{len(self.cases)} cases in {target}")


class Stdio:
    """A client of one MCP server on stdio, as small as it can be."""

    def __init__(self, command, folder, env=()):
        environment = {**os.environ, "RECORD_FOLDER": str(folder), **dict(env)}
        self.process = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self.next_id = 0
        self.ask("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "r", "version": "1"}})
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        """The lines up to the answer."""
        self.next_id += 1
        self.send({"id": self.next_id, "method": method, "params": params})
        lines = []
        while line := self.process.stdout.readline().decode():
            lines.append(line.strip())
            if f'"id":{self.next_id}' in line.replace(" ", "") and '"method"' not in line:
                return "\n".join(lines)
        raise SystemExit(f"the server ended during {method}")

    def call(self, tool, arguments):
        body = self.ask("tools/call", {"name": tool, "arguments": arguments})
        return {"server": "recorded", "tool": tool, "arguments": arguments, "wire": "stdio",
                "exchange": {"status": None, "headers": {}, "body": body[:BODY_MAX] if len(body) > BODY_MAX else body}}

    def close(self):
        self.process.kill()
        self.process.wait()


def version(command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout.strip()


def network_tools(recorder, client, kind, origin, tools):
    for tool, library, peers in tools:
        for peer in peers:
            start, right, harm = stand_in.PEERS[peer]
            with start() as address:
                # The address goes under a name that no proxy takes for a target: what fails is the tool's own upstream.
                call = client.call(tool, {"address": address})
            call["arguments"] = {"address": "stock"}
            recorder.keep(f"{kind}-{library}-{peer}", f"{origin}, {library}: {peer}", call, right, harm)


NETWORK = ["refused", "unknown-name", "self-signed", "silent", "reset", "closed", "truncated"]
STATUSES = [str(status) for status in stand_in.STATUSES]


def python_sdk(recorder, generation):
    interpreter = CACHE / f"python-sdk-{generation}" / "bin" / "python"
    sdk = version([interpreter, "-c", "import importlib.metadata as m; print(m.version('mcp'))"])
    kind, origin = f"python{generation}", f"Python mcp {sdk} on stdio"
    client = Stdio([interpreter, HERE / "tools_python.py"], recorder.folder)
    if generation == 1:
        network_tools(recorder, client, kind, origin, [
            ("load_with_urllib", "urllib", NETWORK + STATUSES),
            ("load_with_httpx", "httpx", NETWORK + STATUSES),
            ("load_with_socket", "socket", ["refused", "unknown-name", "silent", "reset"]),
        ])
    for name, tool, arguments, labels in [
        ("unknown-tool", "frobnicate", {}, UNKNOWN_TOOL),
        ("missing-argument", "list_items", {}, INPUT),
        ("wrong-type", "list_items", {"limit": "many"}, INPUT),
        ("wrong-enum", "list_items", {"limit": 1, "order": "best"}, INPUT),
        ("no-such-file", "read_note", {"path": "/nowhere/note.txt"}, INPUT),
        ("is-a-folder", "read_note", {"path": "/"}, INPUT),
        ("bad-sql", "query_rows", {"sql": "selec 1"}, INPUT),
        ("no-such-table", "query_rows", {"sql": "select * from nowhere"}, INPUT),
        ("no-such-column", "query_rows", {"sql": "select nothing from rows"}, INPUT),
        ("duplicate-key", "query_rows", {"sql": "insert into rows (id, name) values (1, 'a'), (2, 'a')"}, INPUT),
        ("locked-database", "query_locked", {"sql": "select * from rows"}, LOCKED),
        ("no-such-program", "run_program", {"name": "no-such-program"}, (["USER_INPUT", "TECHNICALLY_BROKEN", None], [])),
        ("bad-json", "parse_json", {"text": "{"}, (["USER_INPUT", None], ["TECHNICALLY_BROKEN"])),
        ("key-not-set", "needs_key", {"city": "Rome"}, (["TECHNICALLY_BROKEN", None], ["USER_PERMISSION"])),
        ("broken-output", "count_rows", {"broken": True}, SERVERS_OWN),
        ("works", "count_rows", {"broken": False}, WORKING),
        ("about-errors", "page_about_errors", {}, WORKING),
    ]:
        call = client.call(tool, arguments)
        # Generation 2 tells callers nothing of what a tool raised.
        hidden = f'"Error executing tool {tool}"' in call["exchange"]["body"]
        recorder.keep(f"{kind}-{name}", f"{origin}: {name}", call, *(HIDDEN if hidden else labels))
    client.close()


def typescript_sdk(recorder):
    sdk = json.loads((NODE_MODULES / "@modelcontextprotocol/sdk/package.json").read_text())["version"]
    origin = f"TypeScript sdk {sdk}, node {version(['node', '-v'])} on stdio"
    # Modules are found from where the program lies.
    program = NODE_MODULES.parent / "recorded-tools.mjs"
    shutil.copy(HERE / "tools_node.mjs", program)
    client = Stdio(["node", program], recorder.folder)
    network_tools(recorder, client, "node", origin, [
        ("load_with_fetch_and_cause", "fetch-cause", NETWORK + STATUSES),
        ("load_with_http", "http", NETWORK + STATUSES),
    ])
    for peer in ["refused", "unknown-name", "reset"]:
        with stand_in.PEERS[peer][0]() as address:
            call = client.call("load_with_fetch", {"address": address})
        call["arguments"] = {"address": "stock"}
        recorder.keep(f"node-fetch-{peer}", f"{origin}, bare fetch: {peer}", call, [None, *FAULTS], CALLERS)
    for name, tool, arguments, labels in [
        ("unknown-tool", "frobnicate", {}, UNKNOWN_TOOL),
        ("disabled-tool", "switched_off", {}, (["USER_PERMISSION", "USER_INPUT"], FAULTS)),
        ("missing-argument", "list_items", {}, INPUT),
        ("wrong-type", "list_items", {"limit": "many"}, INPUT),
        ("too-big", "list_items", {"limit": 1000}, INPUT),
        ("wrong-enum", "list_items", {"limit": 1, "order": "best"}, INPUT),
        ("no-such-file", "read_note", {"path": "/nowhere/note.txt"}, INPUT),
        ("is-a-folder", "read_note", {"path": "/"}, INPUT),
        ("folder-exists", "make_folder", {"path": "/tmp"}, INPUT),
        ("no-such-program", "run_program", {"name": "no-such-program"}, (["USER_INPUT", "TECHNICALLY_BROKEN", None], [])),
        ("failing-program", "run_program", {"name": "false"}, ([None, "USER_INPUT"], ["TECHNICALLY_BROKEN"])),
        ("bad-json", "parse_json", {"text": "{"}, (["USER_INPUT", None], ["TECHNICALLY_BROKEN"])),
        ("bad-pattern", "match_pattern", {"pattern": "("}, INPUT),
        ("key-not-set", "needs_key", {}, UNCONFIGURED),
        ("broken-output", "count_rows", {}, SERVERS_OWN),
        ("no-output", "count_rows_without", {}, SERVERS_OWN),
        ("about-errors", "page_about_errors", {}, WORKING),
    ]:
        recorder.keep(f"node-{name}", f"{origin}: {name}", client.call(tool, arguments), *labels)
    client.close()
    program.unlink()


def everything(recorder):
    package = NODE_MODULES / "@modelcontextprotocol/server-everything"
    origin = f"server-everything {json.loads((package / 'package.json').read_text())['version']} on stdio"
    client = Stdio(["node", package / "dist/index.js", "stdio"], recorder.folder)
    for name, tool, arguments, labels in [
        ("unknown-tool", "frobnicate", {}, UNKNOWN_TOOL),
        ("missing-argument", "echo", {}, INPUT),
        ("wrong-type", "get-sum", {"a": "one", "b": 2}, INPUT),
        ("works", "echo", {"message": "Error: 503, the token expired"}, WORKING),
    ]:
        recorder.keep(f"everything-{name}", f"{origin}: {name}", client.call(tool, arguments), *labels)
    client.close()


def request(port, method, path, headers=(), body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, body=body, headers=dict(headers))
    answer = connection.getresponse()
    text = answer.read().decode("utf-8", "replace")[:BODY_MAX]
    kept = {name.lower(): value for name, value in answer.getheaders() if name.lower() not in ("connection", "keep-alive")}
    connection.close()
    return {"service": "recorded", "request": {"method": method, "path": path},
            "response": {"status": answer.status, "headers": kept, "body": text}}


@contextlib.contextmanager
def program(*command):
    """A program that prints its port first."""
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    yield int(process.stdout.readline())
    process.kill()
    process.wait()


JSON = {"content-type": "application/json"}
RIGHT = {
    400: INPUT, 404: INPUT, 405: INPUT, 409: INPUT, 413: INPUT, 415: INPUT, 422: INPUT, 414: INPUT, 431: INPUT,
    401: (["USER_SPECIFIC_TECHNICAL"], ["USER_INPUT"]), 403: (["USER_PERMISSION", None], FAULTS),
    429: (["INTERMITTENT"], CALLERS), 500: (["INTERMITTENT", None], CALLERS), 501: ([None, "USER_INPUT"], ["USER_PERMISSION"]),
    502: (["INTERMITTENT"], CALLERS), 503: (["INTERMITTENT", "TECHNICALLY_BROKEN"], CALLERS), 504: (["INTERMITTENT"], CALLERS),
}


def web_applications(recorder):
    starlette = CACHE / "python-sdk-1" / "bin" / "python"
    express = NODE_MODULES.parent / "recorded-web.mjs"
    shutil.copy(HERE / "web_node.mjs", express)
    bad_json = ("POST", "/items", JSON, "{")
    by_status = [("GET", f"/status/{status}", {}, None) for status in (400, 401, 403, 404, 409, 429, 500, 503)]
    common = [("GET", "/nowhere", {}, None), ("DELETE", "/items", {}, None), ("GET", "/raise", {}, None)]
    applications = [
        ("flask", [sys.executable, HERE / "web_python.py", "flask"], [bad_json, ("POST", "/items", {}, "x"), *common, *by_status]),
        ("starlette", [starlette, HERE / "web_python.py", "starlette"], [*common, *by_status]),
        ("starlette-json", [starlette, HERE / "web_python.py", "starlette", "json"], [*common, *by_status]),
        ("http.server", [sys.executable, HERE / "web_python.py", "http.server"], [("GET", "/nowhere", {}, None), ("PUT", "/x", {}, "x")]),
        ("express", ["node", express, "express"], [bad_json, ("POST", "/items", JSON, json.dumps({"a": "x" * 2000})), *common, *by_status]),
        ("node", ["node", express, "node"], [("GET", "/nowhere", {}, None), ("GET", "/", {"x-long": "x" * 4000}, None)]),
    ]
    for name, command, requests in applications:
        with program(*command) as port:
            for method, path, headers, body in requests:
                case = request(port, method, path, headers, body)
                status = case["response"]["status"]
                tail = path.strip("/").replace("/", "-") or "root"
                origin = f"{name}: {method} {path}"
                recorder.keep(f"web-{name}-{method.lower()}-{tail}-{status}", origin, case, *RIGHT[status])
    express.unlink()


NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log /dev/null;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  server {{
    listen 127.0.0.1:{port}; client_max_body_size 10;
    location /refused {{ proxy_pass http://127.0.0.1:{closed}; }}
    location /silent {{ proxy_pass http://127.0.0.1:{silent}; proxy_read_timeout 1s; }}
    location /denied {{ deny all; }}
    location /login {{ auth_basic x; auth_basic_user_file /dev/null; }}
    location /down {{ return 503; }}
  }}
}}
"""
HAPROXY = """
defaults
  mode http
  timeout client 3s
  timeout connect 1s
  timeout server 1s
frontend f
  bind 127.0.0.1:{port}
  http-request deny deny_status 403 if {{ path /denied }}
  http-request deny deny_status 429 if {{ path /limited }}
  http-request deny deny_status 400 if {{ path /bad }}
  use_backend refused if {{ path /refused }}
  use_backend silent if {{ path /silent }}
  use_backend none if {{ path /none }}
backend refused
  server s 127.0.0.1:{closed}
backend silent
  server s 127.0.0.1:{silent}
backend none
"""


def free_port():
    with stand_in.listener() as server:
        return server.getsockname()[1]


def wait_for(port):
    for _ in range(200):
        with contextlib.suppress(OSError):
            http.client.HTTPConnection("127.0.0.1", port, timeout=1).connect()
            return
        subprocess.run(["sleep", "0.05"], check=True)
    raise SystemExit(f"nobody listens on {port}")


def edges(recorder):
    with stand_in.serving(stand_in.silent) as silent:
        for name, text, command, paths in [
            ("nginx", NGINX, ["nginx", "-e", "/dev/null", "-c"],
             ["refused", "silent", "denied", "login", "down", "nowhere", "big"]),
            ("haproxy", HAPROXY, ["haproxy", "-q", "-db", "-f"], ["refused", "silent", "denied", "limited", "bad", "none", "nowhere"]),
        ]:
            port = free_port()
            file = recorder.folder / f"{name}.conf"
            file.write_text(text.format(folder=recorder.folder, port=port, closed=free_port(), silent=silent))
            process = subprocess.Popen([*command, str(file)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait_for(port)
            what = subprocess.run([name, "-v"], capture_output=True, text=True, check=True)
            line = (what.stdout + what.stderr).splitlines()[0]
            for path in paths:
                body = "x" * 100 if path == "big" else None
                case = request(port, "POST" if body else "GET", f"/{path}", {}, body)
                status = case["response"]["status"]
                recorder.keep(f"edge-{name}-{path}-{status}", f"{line}: /{path}", case, *RIGHT[status])
            process.terminate()
            process.wait()


def main():
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(pathlib.Path(folder))
        python_sdk(recorder, 1)
        python_sdk(recorder, 2)
        typescript_sdk(recorder)
        everything(recorder)
        web_applications(recorder)
        edges(recorder)
        recorder.write()


if __name__ == "__main__":
    main()
