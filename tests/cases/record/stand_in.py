"""What tools call when they are recorded: peers that fail in every way the network knows, on free local ports.

Each peer is a function that yields an address. `PEERS` names them; the record says what a proxy should make of each.
"""

import contextlib
import json
import pathlib
import socket
import ssl
import subprocess
import tempfile
import threading

STATUSES = {
    400: ("Bad Request", {"error": {"code": "invalid_request", "message": "The field 'limit' must be an integer"}}),
    401: ("Unauthorized", {"error": "invalid_token", "error_description": "The access token expired"}),
    403: ("Forbidden", {"error": {"status": "PERMISSION_DENIED", "message": "The caller does not have permission"}}),
    404: ("Not Found", {"detail": "Not found."}),
    409: ("Conflict", {"title": "Conflict", "status": 409, "detail": "A record of that name already exists"}),
    422: ("Unprocessable Entity", {"detail": [{"loc": ["body", "name"], "msg": "Field required", "type": "missing"}]}),
    429: ("Too Many Requests", {"code": "rate_limited", "message": "Slow down"}),
    500: ("Internal Server Error", {"timestamp": "2026-03-02T10:00:00Z", "status": 500, "error": "Internal Server Error"}),
    502: ("Bad Gateway", None),
    503: ("Service Unavailable", {"message": "Service temporarily unavailable"}),
    504: ("Gateway Timeout", None),
}


def listener():
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", 0))
    server.listen(64)
    return server


@contextlib.contextmanager
def serving(answer, wrap=None):
    """Answers every connection by `answer(socket)` until the end of the block."""
    server = listener()

    def loop():
        while True:
            try:
                peer, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(peer,), daemon=True).start()

    def one(peer):
        with contextlib.suppress(OSError):
            peer = wrap(peer) if wrap else peer
            answer(peer)
            peer.close()

    threading.Thread(target=loop, daemon=True).start()
    yield server.getsockname()[1]
    server.close()


def read_request(peer):
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = peer.recv(65536)
        if not chunk:
            break
        data += chunk
    return data


def http_status(status):
    reason, body = STATUSES[status]
    text = json.dumps(body) if body else f"<html><body><h1>{status} {reason}</h1></body></html>"
    kind = "application/json" if body else "text/html"
    head = f"HTTP/1.1 {status} {reason}\r\ncontent-type: {kind}\r\ncontent-length: {len(text)}\r\nconnection: close\r\n"

    def answer(peer):
        read_request(peer)
        peer.sendall(f"{head}\r\n{text}".encode())

    return answer


def silent(peer):
    peer.recv(65536)
    threading.Event().wait(20)


def resetting(peer):
    peer.recv(65536)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")


def closing(peer):
    peer.recv(65536)


def truncating(peer):
    read_request(peer)
    peer.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"rows\": [1, 2")


@contextlib.contextmanager
def refused():
    server = listener()
    port = server.getsockname()[1]
    server.close()
    yield f"http://127.0.0.1:{port}/items"


@contextlib.contextmanager
def plain(answer):
    with serving(answer) as port:
        yield f"http://127.0.0.1:{port}/items"


@contextlib.contextmanager
def self_signed():
    with tempfile.TemporaryDirectory() as folder:
        key, cert = pathlib.Path(folder, "key.pem"), pathlib.Path(folder, "cert.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
            check=True, capture_output=True,
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        with serving(http_status(404), lambda peer: context.wrap_socket(peer, server_side=True)) as port:
            yield f"https://localhost:{port}/items"


@contextlib.contextmanager
def unknown_name():
    yield "http://no-such-host.invalid/items"


BROKEN, PASSING, INPUT = ["TECHNICALLY_BROKEN"], ["INTERMITTENT"], ["USER_INPUT"]
CREDENTIAL, DENIED = ["USER_SPECIFIC_TECHNICAL"], ["USER_PERMISSION"]
FAULTS = ["TECHNICALLY_BROKEN", "INTERMITTENT"]
CALLERS = ["USER_INPUT", "USER_PERMISSION", "USER_SPECIFIC_TECHNICAL"]

# name: (how to start it, what is right, what would do harm)
PEERS = {
    "refused": (refused, BROKEN, CALLERS),
    "unknown-name": (unknown_name, ["TECHNICALLY_BROKEN", "INTERMITTENT"], CALLERS),
    "self-signed": (self_signed, BROKEN, CALLERS),
    "silent": (lambda: plain(silent), PASSING + [None], CALLERS),
    "reset": (lambda: plain(resetting), PASSING + [None], CALLERS),
    "closed": (lambda: plain(closing), PASSING + [None], CALLERS),
    "truncated": (lambda: plain(truncating), PASSING + [None], CALLERS),
    "400": (lambda: plain(http_status(400)), INPUT, FAULTS),
    "401": (lambda: plain(http_status(401)), CREDENTIAL, ["USER_INPUT"]),
    "403": (lambda: plain(http_status(403)), DENIED, FAULTS),
    "404": (lambda: plain(http_status(404)), INPUT, FAULTS),
    "409": (lambda: plain(http_status(409)), INPUT, FAULTS),
    "422": (lambda: plain(http_status(422)), INPUT, FAULTS),
    "429": (lambda: plain(http_status(429)), PASSING, CALLERS),
    "500": (lambda: plain(http_status(500)), PASSING + [None], CALLERS),
    "502": (lambda: plain(http_status(502)), PASSING, CALLERS),
    "503": (lambda: plain(http_status(503)), PASSING, CALLERS),
    "504": (lambda: plain(http_status(504)), PASSING, CALLERS),
}
