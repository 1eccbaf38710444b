"""A proxy in front of the emulator of DynamoDB that makes requests fail as the network and DynamoDB do.

The emulator never conflicts, throttles or loses an answer. In front of it this does: before a request arrives (throttled,
500, a conflict of transactions, a broken connection), and after it did (the answer is lost; or it is lost and the same
request arrives once more later, when the table has forgotten its token).
"""
import json
import random
import sys
import threading
from collections import Counter
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

WRITE = "TransactWriteItems"
# How often each befalls a request while the weather is bad.
WEATHER = {"throttled": 0.04, "broken": 0.03, "reset": 0.03, "lost": 0.06}
# And a transaction besides.
WEATHER_OF_WRITES = {"conflict": 0.06, "echoed": 0.03}


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        # A client that is gone, because it waited long enough or was killed, is no error of the proxy. Others are told.
        if not isinstance(sys.exc_info()[1], (BrokenPipeError, ConnectionResetError)):
            super().handle_error(request, client_address)


class Table:
    """The proxy on a port of its own. `seed` makes its weather the same again for the same requests."""

    def __init__(self, emulator, seed):
        where = urlsplit(emulator)
        self.host, self.port, self.random = where.hostname, where.port, random.Random(seed)
        self.lock, self.bad_weather, self.rule = threading.Lock(), False, None
        self.befell, self.late = Counter(), []
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                proxy.serve(self)

            def log_message(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def fate(self, operation):
        """What befalls a request: by the rule if there is one, else by the weather."""
        with self.lock:
            if self.rule:
                fate = self.rule(operation)
            else:
                chances = {**WEATHER, **(WEATHER_OF_WRITES if operation == WRITE else {})} if self.bad_weather else {}
                roll, fate = self.random.random(), None
                for kind, chance in chances.items():
                    roll -= chance
                    if roll < 0:
                        fate = kind
                        break
            if fate:
                self.befell[fate] += 1
            return fate

    def serve(self, handler):
        body = handler.rfile.read(int(handler.headers.get("content-length", 0)))
        headers = {name: value for name, value in handler.headers.items() if name.lower() != "host"}
        operation = headers.get("x-amz-target", "").rpartition(".")[2]
        fate = self.fate(operation)
        if fate == "throttled":
            return refuse(handler, 400, "ThrottlingException")
        if fate == "broken":
            return refuse(handler, 500, "InternalServerError")
        if fate == "conflict":
            return refuse(handler, 400, "TransactionCanceledException", CancellationReasons=[{"Code": "TransactionConflict"}])
        if fate == "reset":
            return hang_up(handler)
        status, kind, answer = self.forward(handler.path, headers, body)
        if fate in ("lost", "echoed"):
            if fate == "echoed":
                with self.lock:
                    self.late.append((handler.path, headers, forgotten(body)))
            return hang_up(handler)
        handler.send_response(status)
        handler.send_header("content-type", kind)
        handler.send_header("content-length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer)
        return None

    def forward(self, path, headers, body):
        connection = HTTPConnection(self.host, self.port, timeout=30)
        try:
            connection.request("POST", path, body, {**headers, "content-length": str(len(body))})
            response = connection.getresponse()
            return response.status, response.getheader("content-type", "application/x-amz-json-1.0"), response.read()
        finally:
            connection.close()

    def deliver_late(self):
        """Requests that were applied arrive once more, their tokens forgotten. Returns how many the table refused."""
        with self.lock:
            late, self.late = self.late, []
        answers = [self.forward(*request) for request in late]
        assert all(status != 200 for status, _, _ in answers), "a request was applied twice"
        return len(answers)


def forgotten(body):
    request = json.loads(body)
    request["ClientRequestToken"] = request["ClientRequestToken"][::-1]
    return json.dumps(request).encode()


def refuse(handler, status, code, **more):
    answer = json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "made up", **more}).encode()
    handler.send_response(status)
    handler.send_header("content-type", "application/x-amz-json-1.0")
    handler.send_header("content-length", str(len(answer)))
    handler.end_headers()
    handler.wfile.write(answer)


def hang_up(handler):
    handler.close_connection = True
    handler.connection.close()
