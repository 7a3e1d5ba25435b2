"""The life of a pod, played with processes: the sidecar starts before its backend, both serve, both are told to leave in the
order in which the kubelet does it. No outage may be written that was none, and no call that the backend took may be lost."""

import concurrent.futures
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import known_commands
import pytest
import yaml
from harness import backends
from harness.processes import Program, eventually
from tools import HERE, REPO

MANIFEST = REPO / "deploy" / "kubernetes" / "deployment.yaml"
CALLERS = 8


class Pod:
    """What the kubelet sees of a pod: the sidecar's probes and hooks as the manifest states them, and two processes."""

    def __init__(self, workshop):
        self.workshop = workshop
        self.spec = next(iter(yaml.safe_load_all(MANIFEST.read_text())))["spec"]["template"]["spec"]
        [self.container] = self.spec["initContainers"]
        self.address = f"127.0.0.{next(backends._addresses) % 200 + 11}"
        self.backend = None
        # A port that is free and stays ours: an address of the pod's own, as a network namespace would give it.
        self.backend_url = f"http://{self.address}:8081/mcp"
        self.sidecar = workshop.toolvane(self.backend_url, identity={"trusted_sources": ["127.0.0.0/8"]}, admin=self.admin())

    def admin(self):
        """The admin section that the manifest's hook relies on, with a socket in a folder of the test."""
        folder = pathlib.Path(tempfile.mkdtemp(dir="/tmp"))
        self.workshop._stack.callback(shutil.rmtree, folder, True)
        self.socket = folder / "admin.sock"
        return {"listen": "127.0.0.1:0", "socket": str(self.socket), "local_writes": "socket"}

    def probe(self, kind):
        path = self.container[f"{kind}Probe"]["httpGet"]["path"]
        return self.sidecar.get(path)[0]

    def start_backend(self):
        script = HERE / "servers" / "graceful.py"
        self.backend = Program("graceful", [sys.executable, script, f"{self.address}:8081"], self.workshop.folder)
        self.workshop._stack.callback(self.backend.kill)
        self.backend.url("graceful server")

    def run_pre_stop(self):
        """The sidecar's preStop hook, as the manifest states it."""
        _, *arguments = self.container["lifecycle"]["preStop"]["exec"]["command"]
        binary = self.workshop.config.getoption("toolvane").absolute()
        known_commands.needs(binary, arguments[0])
        command = [binary, *(f"unix:{self.socket}" if word.startswith("unix:") else word for word in arguments)]
        subprocess.run(list(map(str, command)), check=True, capture_output=True, timeout=30)


@pytest.fixture
def pod(workshop):
    return Pod(workshop)


class Traffic:
    """Callers that call without a pause until they are stopped, and what became of every call."""

    def __init__(self, url):
        self.url, self.done, self.refused, self.lost = url, 0, 0, []
        self._over, self._lock = threading.Event(), threading.Lock()
        self._callers = concurrent.futures.ThreadPoolExecutor(CALLERS)
        self._running = [self._callers.submit(self._call_on) for _ in range(CALLERS)]

    def _call_on(self):
        while not self._over.is_set():
            answer = call(self.url)
            with self._lock:
                if answer == "done":
                    self.done += 1
                elif answer == "refused":
                    self.refused += 1
                    # Nobody is there any more; a real caller would go to another pod.
                    time.sleep(0.01)
                else:
                    self.lost.append(answer)

    def stop(self):
        self._over.set()
        for caller in self._running:
            caller.result(timeout=60)
        self._callers.shutdown()


def call(url):
    """`done`, `refused` (whoever answers, the backend did not take the call), or what else came."""
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "work", "arguments": {}}}
    ).encode()
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=30) as answer:
            text = answer.read().decode()
            if answer.headers.get("x-toolvane"):
                return "refused" if "was not called" in text or "could not be reached" in text else text
            return "done" if '"done"' in text else text
    # A listener that closes resets what nobody had taken yet. That nothing was lost is for the backend's counts to show.
    except urllib.error.URLError as error:
        return "refused" if isinstance(error.reason, ConnectionRefusedError | ConnectionResetError) else repr(error)
    except ConnectionResetError:
        return "refused"
    except OSError as error:
        return repr(error)


def served(pod):
    """The pod serves, with traffic on it."""
    assert pod.probe("startup") == pod.probe("readiness") == pod.probe("liveness") == 200
    assert pod.sidecar.documents() == []
    pod.start_backend()
    traffic = Traffic(pod.sidecar.url)
    pod.workshop._stack.callback(traffic.stop)
    eventually(lambda: traffic.done > 2 * CALLERS, 20, "calls through the sidecar")
    assert traffic.lost == [] and traffic.refused == 0
    return traffic


def counted(backend):
    found = re.search(r"accepted=(\d+) answered=(\d+)", "".join(backend.lines))
    assert found, backend.lines
    return int(found[1]), int(found[2])


def ended(pod, program, within):
    started = time.monotonic()
    program.process.wait(within)
    program._reader.join(within)
    assert program.process.returncode == 0, (program.name, program.process.returncode, program.lines[-5:])
    return time.monotonic() - started


def no_false_outage_is_remembered(pod):
    """A successor with the same state file believes that all is well."""
    config = json.loads(pod.sidecar.config.read_text())
    successor = pod.workshop.toolvane(pod.backend_url, store=config["store"])
    assert [d for d in successor.documents() if d["status"] != "OK"] == []


def test_the_sidecar_is_ready_before_its_backend_is_there(pod):
    assert pod.probe("startup") == 200
    assert pod.probe("readiness") == 200
    assert pod.probe("liveness") == 200
    assert pod.sidecar.documents() == []


def test_a_rolling_stop_in_kubernetes_writes_no_outage_and_loses_no_call(pod):
    traffic = served(pod)
    # The kubelet runs the sidecar's preStop at once, beside the end of the main containers; the sidecar's SIGTERM waits for them.
    pod.run_pre_stop()
    assert pod.probe("readiness") == 503
    assert pod.probe("liveness") == 200
    before = traffic.done
    eventually(lambda: traffic.done > before + CALLERS, 20, "calls while draining")
    pod.backend.process.send_signal(signal.SIGTERM)
    ended(pod, pod.backend, 20)
    eventually(lambda: traffic.refused > CALLERS, 20, "calls without a backend")
    troubles = [d for d in pod.sidecar.documents() if d["status"] != "OK"]
    pod.sidecar.program.process.send_signal(signal.SIGTERM)
    took = ended(pod, pod.sidecar.program, pod.spec["terminationGracePeriodSeconds"])
    traffic.stop()
    accepted, answered = counted(pod.backend)
    assert accepted == answered == traffic.done
    assert traffic.lost == []
    assert troubles == []
    assert took < pod.spec["terminationGracePeriodSeconds"] / 2
    no_false_outage_is_remembered(pod)


def test_a_stop_of_both_at_once_writes_no_outage_and_loses_no_call(pod):
    """Compose and systemd tell both at the same time."""
    traffic = served(pod)
    pod.sidecar.program.process.send_signal(signal.SIGTERM)
    pod.backend.process.send_signal(signal.SIGTERM)
    ended(pod, pod.backend, 20)
    ended(pod, pod.sidecar.program, 20)
    traffic.stop()
    accepted, answered = counted(pod.backend)
    assert accepted == answered
    assert traffic.done == answered
    no_false_outage_is_remembered(pod)
