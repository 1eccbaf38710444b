"""Receivers of webhooks that behave badly, each with a record of what it got.

Every request is verified with the public Standard Webhooks library before it counts; what fails that is a fault of its own.
"""
import base64
import hashlib
import json
import os
import sqlite3
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import Webhook

SECRET = "whsec_" + base64.b64encode(hashlib.sha256(b"outside").digest()).decode()


class Hook:
    """One receiver on its own port. `behave(number, message)` says what to do with a delivery: a status, or one of
    "hang" (until released), "close" (without an answer), "flood" (200 and a body of a gigabyte)."""

    def __init__(self, behave=lambda number, message: 204, secret=SECRET, database=None):
        """With the file of a store, every message must be of an event that is committed at the moment when it comes."""
        self.database = database
        self.behave, self.webhook, self.release = behave, Webhook(secret), threading.Event()
        self.lock, self.got, self.taken, self.faults, self.written = threading.Lock(), [], [], [], 0
        hook = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                hook.handle(self)

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads, request_queue_size = True, 128

            def handle_error(self, *_):
                pass  # Clients that close early are part of the test.

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hook"

    def handle(self, request):
        body = request.rfile.read(int(request.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            message = self.webhook.verify(body, headers)
            assert headers["webhook-id"] == message["id"] == headers["ce-id"], (headers, message)
            assert headers["ce-specversion"] == "1.0" and headers["ce-type"] == message["type"], headers
            assert list(message) == ["id", "type", "time", "tenant", "workflow_id", "seq", "data"], list(message)
            assert self.database is None or committed(self.database, message), f"{message['id']} came before its commit"
        except Exception as fault:
            with self.lock:
                self.faults.append(f"{type(fault).__name__}: {fault}")
            message = None
        with self.lock:
            number = len(self.got)
            self.got.append((time.monotonic(), message, body))
        how = 400 if message is None else self.behave(number, message)
        if how == "hang":
            self.release.wait()
            request.close_connection = True
        elif how == "close":
            request.close_connection = True
        elif how == "flood":
            self.take(message)
            self.flood(request)
        else:
            if 200 <= how < 300:
                self.take(message)
            request.send_response(how)
            request.send_header("content-length", "0")
            request.end_headers()

    def take(self, message):
        with self.lock:
            self.taken.append(message)

    def flood(self, request):
        request.send_response(200)
        request.send_header("content-length", str(10**9))
        request.end_headers()
        request.close_connection = True
        try:
            for _ in range(10**9 // 65536):
                request.wfile.write(b"x" * 65536)
                self.written += 65536
        except OSError:
            pass

    def ids(self):
        with self.lock:
            return [message["id"] for message in self.taken]

    def check(self, late=()):
        """What must hold of every receiver: nothing unsigned, one body for each id, in order within a workflow but for
        those that an operator sent late."""
        with self.lock:
            got, taken, faults = list(self.got), list(self.taken), list(self.faults)
        assert not faults, faults[:3]
        bodies = {}
        for _, message, body in got:
            known = bodies.setdefault(message["id"], body)
            assert known == body, f"another body under the id {message['id']}"
        first = {}
        for message in (m for m in taken if m["id"] not in late):
            first.setdefault((message["workflow_id"], message["id"].split("/")[2]), []).append(message["seq"])
        for stream, seqs in first.items():
            fresh = list(dict.fromkeys(seqs))
            assert fresh == sorted(fresh), f"out of order in {stream}: {seqs}"

    def close(self):
        self.release.set()
        self.server.shutdown()
        self.server.server_close()


def committed(database, message):
    """Whether another process that looks into the store now finds the event of a message."""
    store = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        found = store.execute("SELECT body FROM events e JOIN workflows w ON w.wid = e.wid WHERE w.tenant = ? AND w.id = ? AND e.seq = ?",
                              (message["tenant"], message["workflow_id"], message["seq"])).fetchall()
    finally:
        store.close()
    return len(found) == 1 and json.loads(found[0][0])["kind"] == message["type"]


def routes(folder, *hooks, **common):
    """The [[notifications.route]] of a server: (recipient, hook) each, all with the same secret."""
    secret = os.path.join(folder, "hook.secret")
    with open(secret, "w", encoding="utf-8") as file:
        file.write(SECRET + "\n")
    text = ""
    for to, url in hooks:
        text += (f'[[notifications.route]]\nto = "{to}"\nsink = "webhook"\nurl = "{url}"\n'
                 f'secret_file = "{secret}"\nallow_private = true\n')
    return text
