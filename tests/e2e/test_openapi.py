"""schemathesis asks the admin listener whatever its OpenAPI document allows, and much that it does not: nothing may come of it
but what the document says. The seed is fixed, so that what fails fails again."""

import subprocess
import urllib.parse
import urllib.request

import pytest

from harness import install

TOKEN = "operator-token-0123456789"
CHECKS = [
    *("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance"),
    *("response_schema_conformance", "unsupported_method", "ignored_auth"),
]
# A stream never ends, and after a drain every write is refused.
LEFT_OUT = ["/v1/events", "/v1/drain"]


def asked(workshop, examples):
    (workshop.folder / "token").write_text(TOKEN)
    tokens = [{"name": "ops", "token": {"file": str(workshop.folder / "token")}, "roles": ["operator"]}]
    front = workshop.toolvane(
        workshop.demo().url,
        # Not loopback: whoever has no token has no business there.
        admin={"listen": "0.0.0.0:0", "tokens": tokens},
        tools={"echo": {"safety": "SAFE_PROBE", "sample": {"text": "hello"}}},
        integrations={"gmail": {"credentials_required": [{"env": "NEVER_SET"}]}},
        diagnosis={"engine": "external"},
    )
    address = f"http://127.0.0.1:{urllib.parse.urlsplit(front.admin).port}"
    document = workshop.folder / "openapi.json"
    request = urllib.request.Request(f"{address}/v1/openapi.json", headers={"authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request, timeout=5) as answer:
        document.write_bytes(answer.read())
    command = [install.schemathesis(), "run", document, "--url", address, "--seed", "1"]
    command += ["--header", f"Authorization: Bearer {TOKEN}", "--max-examples", str(examples), "--request-timeout", "20"]
    command += ["--checks", ",".join(CHECKS), "--suppress-health-check", "all", "--generation-database", "none"]
    command += ["--continue-on-failure", "--no-color"]
    for path in LEFT_OUT:
        command += ["--exclude-path", path]
    ended = subprocess.run(list(map(str, command)), cwd=workshop.folder, capture_output=True, text=True)
    (workshop.folder / "schemathesis.log").write_text(ended.stdout + ended.stderr)
    assert ended.returncode == 0, ended.stdout[-6000:] + ended.stderr[-1000:]
    assert front.program.running


def test_no_request_is_answered_otherwise_than_the_document_says(workshop):
    asked(workshop, examples=10)


@pytest.mark.long
def test_no_request_of_very_many_is_answered_otherwise(workshop):
    asked(workshop, examples=500)
