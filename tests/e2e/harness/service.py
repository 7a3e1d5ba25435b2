"""The service behind an integration: answers every probe as told and remembers when it was asked."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Service:
    """Runs in a thread of the tests; `status` may be changed at any time."""

    def __init__(self):
        self.status, self.asked_at, self.authorization = 200, [], []
        service = self

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self):
                service.asked_at.append(time.monotonic())
                service.authorization.append(self.headers.get("authorization"))
                self.send_response(service.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/me"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def asked(self):
        return len(self.asked_at)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
