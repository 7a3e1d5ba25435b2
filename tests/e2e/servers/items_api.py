"""A plain HTTP tool API: items that can be read and made, one that is always broken, one that alice may not read."""

import argparse
import collections
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

arrived = collections.Counter()


class Items(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body, **headers):
        encoded = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(encoded)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(encoded)

    def do_GET(self):
        arrived[self.path] += 1
        user, name = self.headers.get("x-user-id"), self.path.rsplit("/", 1)[-1]
        if self.path == "/control/stats":
            self.answer(200, arrived)
        elif self.path == "/v1/status":
            self.answer(500, {"error": "nobody judges this path"})
        elif self.path.startswith("/v1/reports/"):
            self.answer(500, {"error": {"code": "internal", "message": "the report store lost its disk"}})
        elif name == "secret" and user == "alice":
            self.answer(403, {"error": {"code": "forbidden", "message": "alice may not read this"}})
        else:
            self.answer(200, {"id": name}, etag=f'"{name}"', x_served_by="items")

    do_HEAD = do_GET

    def do_POST(self):
        arrived[self.path] += 1
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.answer(201, {"made": json.loads(body)}, location="/v1/items/7")

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", default="127.0.0.1:0")
    host, port = parser.parse_args().listen.rsplit(":", 1)
    server = ThreadingHTTPServer((host, int(port)), Items)
    server.daemon_threads = True
    print(f"items api on http://{host}:{server.server_port}", file=sys.stderr, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
