"""`toolvane top` in a terminal: it shows what is believed, heeds its keys and NO_COLOR, and gives the terminal back however it ends."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios

import pytest

PATIENCE_SECONDS = 20
TAKEN, GIVEN_BACK = b"\x1b[?1049h", b"\x1b[?1049l"
# A colour that is not the terminal's own.
COLOUR = re.compile(rb"\x1b\[(?:3[0-7]|38;[0-9;]+)m")


def run(binary, admin, end, **environment):
    """Runs it in a terminal of 120 columns until it shows a tool, then ends it; gives what it wrote and its exit code."""
    process, terminal = pty.fork()
    if process == 0:
        os.environ.update({"TERM": "xterm-256color", **environment})
        os.execv(binary, ["toolvane", "top", "--admin", admin])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    written, ended = b"", False
    while select.select([terminal], [], [], PATIENCE_SECONDS)[0]:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:  # The other side is closed.
            break
        written += part
        if not ended and b"broken" in written:
            ended = True
            end(process, terminal)
    _, status = os.waitpid(process, 0)
    return written, os.waitstatus_to_exitcode(status)


def keys(text):
    return lambda _, terminal: os.write(terminal, text)


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(keys(b"q"), id="q"),
        pytest.param(keys(b"\x03"), id="control-c"),
        pytest.param(keys(b"/q\r\rsjq"), id="a filter and details first"),
        pytest.param(lambda process, _: os.kill(process, signal.SIGTERM), id="SIGTERM"),
    ],
)
def test_top_shows_what_is_believed_and_gives_the_terminal_back(workshop, end):
    demo = workshop.demo()
    front = workshop.toolvane(demo.url, tools={"broken": {"down_on_first_failure": True}})
    client = workshop.client("python-1", front.url, user="alice")
    client.call("broken")
    binary = workshop.config.getoption("toolvane").absolute()
    written, code = run(binary, front.admin, end)
    assert code == 0
    assert written.rindex(GIVEN_BACK) > written.rindex(TAKEN)
    assert b"DOWN" in written or b"RETESTING" in written
    assert COLOUR.search(written)
    plain, code = run(binary, front.admin, end, NO_COLOR="1")
    assert code == 0 and not COLOUR.search(plain)
