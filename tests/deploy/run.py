#!/usr/bin/env python3
"""Checks what operators get: manifests, image, unit, dashboards, alerts, documents.

    python3 tests/deploy/run.py              what needs no foreign validator (in `make test`, under a minute)
    python3 tests/deploy/run.py --verify     everything (`make verify-deploy`): real helm, kubectl, Prometheus, buildah, …
    python3 tests/deploy/run.py -k docs      any option of pytest

Build first: cargo build --bin toolvane --example demo_server
"""

import os
import sys

import tools


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--verify"]
    verify = "--verify" in sys.argv
    if verify:
        tools.everything()
    else:
        tools.quick()
    interpreter = str((tools.VALIDATORS if verify else tools.QUICK) / "bin" / "python")
    only = [] if verify else ["-m", "not verify"]
    command = [interpreter, "-m", "pytest", "-c", str(tools.HERE / "pytest.ini"), "--rootdir", str(tools.HERE)]
    os.chdir(tools.HERE)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(tools.HERE), str(tools.HERE.parent / "e2e")])
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.execv(interpreter, [*command, *only, *arguments])


if __name__ == "__main__":
    main()
