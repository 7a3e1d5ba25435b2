"""A service manager (systemd) hears when toolvane serves, that it is alive, and when it leaves."""

import os
import signal
import socket
import subprocess
import time

import pytest

WITHIN_SECONDS = 20


class Manager:
    """The socket of a service manager, and the words that arrive on it."""

    def __init__(self, folder):
        self.address = str(folder / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.address)
        self.heard = []

    def hear_until(self, wanted):
        deadline = time.monotonic() + WITHIN_SECONDS
        while not any(wanted in words for words in self.heard):
            left = deadline - time.monotonic()
            assert left > 0, f"never heard {wanted}; heard {self.heard}"
            self.socket.settimeout(left)
            self.heard.append(self.socket.recv(4096).decode().split())


@pytest.fixture
def manager(tmp_path):
    made = Manager(tmp_path)
    yield made
    made.socket.close()


def start(request, tmp_path, environment):
    binary = request.config.getoption("toolvane").absolute()
    config = tmp_path / "toolvane.yaml"
    config.write_text(
        "listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\nstore: {engine: memory}\ndrain_announce: 0s\n"
        "backends: [{name: backend, kind: mcp, url: 'http://127.0.0.1:9/mcp'}]\n"
    )
    command = [binary, "run", "-c", config]
    return subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def test_it_says_that_it_is_ready_alive_and_leaving_in_that_order(request, tmp_path, manager):
    program = start(request, tmp_path, {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "900000"})
    try:
        manager.hear_until("READY=1")
        assert ["WATCHDOG=1"] not in manager.heard
        manager.hear_until("WATCHDOG=1")
        manager.heard.clear()
        manager.hear_until("WATCHDOG=1")
        program.send_signal(signal.SIGTERM)
        manager.hear_until("STOPPING=1")
        assert program.wait(WITHIN_SECONDS) == 0
    finally:
        program.kill()


def test_a_watchdog_that_belongs_to_another_process_is_left_alone(request, tmp_path, manager):
    environment = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "300000", "WATCHDOG_PID": "1"}
    program = start(request, tmp_path, environment)
    try:
        manager.hear_until("READY=1")
        program.send_signal(signal.SIGTERM)
        manager.hear_until("STOPPING=1")
        assert ["WATCHDOG=1"] not in manager.heard
    finally:
        program.kill()


def test_a_socket_that_is_not_there_is_a_warning_and_no_end(request, tmp_path):
    program = start(request, tmp_path, {"NOTIFY_SOCKET": str(tmp_path / "nowhere")})
    try:
        said = iter(program.stderr.readline, b"")
        assert any(b"NOTIFY_SOCKET" in line for line in said)
        assert program.poll() is None
        program.send_signal(signal.SIGTERM)
        assert program.wait(WITHIN_SECONDS) == 0
    finally:
        program.kill()
