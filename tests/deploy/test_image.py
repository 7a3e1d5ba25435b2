"""The image is built offline from the static binary that `make verify-deploy` made, holds nothing else, and runs."""

import json
import os
import pathlib
import shutil
import signal
import stat

import pytest
from harness import backends
from harness.processes import Program, eventually
from tools import CACHE, REPO, sh

pytestmark = pytest.mark.verify

ROOTFS = REPO / "target" / "dist"
STORE = CACHE / "buildah"
NAME = "localhost/toolvane:checked"


def buildah(*arguments):
    where = ["--root", STORE / "root", "--runroot", STORE / "run", "--storage-driver", "vfs"]
    return sh("buildah", *where, *arguments)


@pytest.fixture(scope="module")
def image():
    """The root of a container of the image, and its configuration."""
    if os.geteuid() != 0:
        pytest.skip("building and entering an image takes root")
    assert (ROOTFS / "out" / "toolvane").exists(), "PROFILE=dev deploy/dist.sh rootfs target/dist/out makes it"
    shutil.rmtree(STORE, ignore_errors=True)
    file = REPO / "deploy" / "Dockerfile"
    context = ["--target", "runtime", "--build-context", f"build={ROOTFS}", "--build-arg", "VERSION=0.0.1"]
    buildah("bud", "--isolation", "chroot", "--format", "docker", *context, "-t", NAME, "-f", file, ROOTFS)
    container = buildah("from", "--pull-never", NAME).strip()
    root = pathlib.Path(buildah("mount", container).strip())
    config = json.loads(buildah("inspect", "--type", "image", NAME))["Docker"]["config"]
    yield root, config
    buildah("umount", container)
    buildah("rm", container)
    shutil.rmtree(STORE, ignore_errors=True)


def test_it_holds_the_binary_the_roots_of_trust_and_a_place_for_the_state_file(image):
    root, _ = image
    files = {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()}
    assert files == {"toolvane", "etc/ssl/certs/ca-certificates.crt"}
    state = (root / "var" / "lib" / "toolvane").stat()
    assert (state.st_uid, state.st_gid) == (65532, 65532)
    assert stat.S_ISDIR(state.st_mode)


def test_it_says_how_it_runs(image):
    _, config = image
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"] == ["/toolvane"]
    assert config["Cmd"] == ["run", "-c", "/etc/toolvane/toolvane.yaml"]
    assert config["WorkingDir"] == "/var/lib/toolvane"
    assert config["Healthcheck"]["Test"] == ["CMD", "/toolvane", "healthcheck"]
    assert config["Labels"]["org.opencontainers.image.version"] == "0.0.1"
    assert "org.opencontainers.image.licenses" in config["Labels"]


def test_its_binary_serves_without_anything_else_and_answers_its_own_health_check(image, request, tmp_path):
    root, config = image
    address = f"127.0.0.{next(backends._addresses) % 200 + 11}"
    demo = Program("demo", [request.config.getoption("demo").absolute(), "--listen", f"{address}:0"], tmp_path)
    url = demo.url("demo server")
    # Names come from the files of the container, which its runtime writes.
    (root / "etc" / "hosts").write_text(f"{address} backend.example\n")
    (root / "etc" / "toolvane").mkdir()
    settings = {
        "listen": "127.0.0.1:0",
        "admin": {"listen": "127.0.0.1:0"},
        "backends": [{"name": "demo", "kind": "mcp", "url": url.replace(address, "backend.example")}],
        "store": {"path": "/var/lib/toolvane/toolvane.redb"},
    }
    (root / "etc" / "toolvane" / "toolvane.yaml").write_text(json.dumps(settings))
    inside = ["chroot", "--userspec=65532:65532", root]
    # What the image says, with the folder that chroot does not set.
    command = [*inside, *config["Entrypoint"], *config["Cmd"]]
    program = Program("image", command, tmp_path)
    try:
        admin = program.url("admin").removeprefix("http://")
        sh(*inside, *config["Healthcheck"]["Test"][1:], "--admin", admin)
        front = {"TOOLVANE": f"{program.url('listening')}/mcp"}
        called = sh("examples/demo_server/call.sh", "echo", '{"text":"through a name"}', env=front)
        assert "through a name" in called
        assert (root / "var" / "lib" / "toolvane" / "toolvane.redb").exists()
    finally:
        program.process.send_signal(signal.SIGTERM)
        demo.stop()
    eventually(lambda: program.process.poll() is not None, 20, "the end")
    assert program.process.returncode == 0
    sh(*inside, *config["Healthcheck"]["Test"][1:], "--admin", admin, ok=(69,))
