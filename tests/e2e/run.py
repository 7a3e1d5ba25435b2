#!/usr/bin/env python3
"""Runs the end-to-end tests: real SDK clients, real servers, the official conformance suite, with toolvane between them.

    python3 tests/e2e/run.py                 everything, against target/debug/toolvane
    python3 tests/e2e/run.py -k python-1     any option of pytest
    python3 tests/e2e/run.py --via direct    without toolvane: checks the clients, the servers and this harness
    python3 tests/e2e/run.py --install       only installs

Needs python3 (with venv), npm and, unless promtool is there, apt-get. Build first: cargo build --bin toolvane --example demo_server
"""

import os
import pathlib
import sys

from harness import install

HERE = pathlib.Path(__file__).resolve().parent


def main():
    install.everything()
    if "--install" in sys.argv:
        return
    interpreter = str(install.python(2))
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [interpreter, "-m", "pytest", "-c", str(HERE / "pytest.ini"), "--rootdir", str(HERE), *sys.argv[1:]]
    os.chdir(HERE)
    os.execve(interpreter, command, environment)


if __name__ == "__main__":
    main()
