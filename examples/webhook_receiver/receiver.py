"""Receives Checkpoint's messages: verifies each signature, drops repeats, answers quickly.

    pip install standardwebhooks==1.1.0
    WEBHOOK_SECRET=whsec_… python receiver.py 9400

Any library of https://www.standardwebhooks.com does the same in other languages. Everything here that is not the example's
own is three rules: verify the raw bytes before reading them; a message may come twice, under the same id; answer 2xx once
you have it for good, anything else to get it again.
"""
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["WEBHOOK_SECRET"])
seen = set()  # In earnest: a table with the id as its key, written in the transaction that acts on the message.


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            message = webhook.verify(body, dict(self.headers))
        except WebhookVerificationError as wrong:
            return self.answer(400, str(wrong))
        if message["id"] not in seen:
            seen.add(message["id"])
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()
        return self.answer(204)

    def answer(self, status, text=""):
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
