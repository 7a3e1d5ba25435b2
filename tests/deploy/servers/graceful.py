#!/usr/bin/env python3
"""An MCP server as a good citizen of a pod: on SIGTERM it takes no new connection, answers what it has accepted
with `Connection: close`, and ends.

Answers every tool call after DELAY seconds. At the end it tells how many calls it accepted and how many it answered.
"""

import http.server
import json
import signal
import sys
import threading
import time

DELAY = 0.2


class Counts:
    accepted = answered = 0
    lock = threading.Lock()


OVER = threading.Event()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        is_call = message["method"] == "tools/call"
        with Counts.lock:
            Counts.accepted += is_call
        if is_call:
            time.sleep(DELAY)
        result = {"content": [{"type": "text", "text": "done"}]} if is_call else {"tools": []}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        if OVER.is_set():
            self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(body)
        with Counts.lock:
            Counts.answered += is_call

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    # Handlers are waited for when the server closes.
    daemon_threads = False
    block_on_close = True
    request_queue_size = 128


def main():
    host, port = sys.argv[1].rsplit(":", 1)
    server = Server((host, int(port)), Handler)
    # An idle kept-alive connection must not hold the end up.
    Handler.timeout = 1

    def leave(*_):
        OVER.set()
        threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, leave)
    print(f"graceful server on http://{server.server_address[0]}:{server.server_address[1]}/mcp", flush=True)
    server.serve_forever(poll_interval=0.02)
    server.server_close()
    print(f"accepted={Counts.accepted} answered={Counts.answered}", flush=True)


if __name__ == "__main__":
    main()
