"""A proxy in front of the emulator that makes requests fail as the network, DynamoDB and Step Functions do.

The emulator never conflicts, throttles or loses an answer. In front of it this does: before a request arrives (throttled,
500, a conflict of transactions, a broken connection, silence until the client gives up), and after it did (the answer is
lost; or it is lost and the same request arrives once more, at once or later, when the table has forgotten its token).

A `flaw` makes of it a table that keeps less than DynamoDB: what is audited behind it must be found.
"""
import json
import random
import re
import sys
import threading
import time
from collections import Counter
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

WRITE = "TransactWriteItems"
# How often each befalls a request while the weather is bad.
WEATHER = {"throttled": 0.04, "broken": 0.03, "reset": 0.03, "lost": 0.06, "silent": 0.01}
# And a transaction besides.
WEATHER_OF_WRITES = {"conflict": 0.06, "echoed": 0.03}
# How often each befalls a call of Step Functions, on top of that.
WEATHER_OF_STATES = {"throttled": 0.2, "broken": 0.1, "lost": 0.2, "twice": 0.15}
OF_STATES = ("StartExecution", "DescribeExecution", "SendTaskSuccess", "StopExecution")
# Longest silence: longer than a client waits.
SILENCE = 20


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        # A client that is gone, because it waited long enough or was killed, is no error of the proxy. Others are told.
        if not isinstance(sys.exc_info()[1], (BrokenPipeError, ConnectionResetError)):
            super().handle_error(request, client_address)


class Table:
    """The proxy on a port of its own. `seed` makes its weather the same again for the same requests. `flaw` changes the
    body of each request of DynamoDB, and says what else is sent afterwards: (body, then)."""

    def __init__(self, emulator, seed, flaw=None):
        where, self.flaw = urlsplit(emulator), flaw
        self.host, self.port, self.random = where.hostname, where.port, random.Random(seed)
        self.lock, self.bad_weather, self.rule = threading.Lock(), False, None
        # An operation of Step Functions that is answered as done, and not done.
        self.swallows = None
        self.befell, self.late, self.asked = Counter(), [], Counter()
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

    def fate(self, operation, of_states=False):
        """What befalls a request: by the rule if there is one, else by the weather."""
        with self.lock:
            self.asked[operation] += self.bad_weather
            if self.rule:
                fate = self.rule(operation)
            else:
                own = WEATHER_OF_STATES if of_states else {**WEATHER, **(WEATHER_OF_WRITES if operation == WRITE else {})}
                roll, fate = self.random.random(), None
                for kind, chance in own.items() if self.bad_weather else ():
                    roll -= chance
                    if roll < 0:
                        fate = kind
                        break
            if fate:
                self.befell[f"{operation} {fate}" if of_states else fate] += 1
            return fate

    def serve(self, handler):
        body = handler.rfile.read(int(handler.headers.get("content-length", 0)))
        headers = {name: value for name, value in handler.headers.items() if name.lower() != "host"}
        service, _, operation = headers.get("x-amz-target", "").rpartition(".")
        if operation == self.swallows:
            self.befell[f"{operation} swallowed"] += 1
            done = json.dumps({"executionArn": "arn:aws:states:us-east-1:000000000000:execution:none:none", "startDate": time.time()})
            return answer_with(handler, 200, "application/x-amz-json-1.0", done.encode())
        fate = self.fate(operation, of_states=service == "AWSStepFunctions")
        if fate == "throttled":
            return refuse(handler, 400, "ThrottlingException")
        if fate == "broken":
            return refuse(handler, 500, "InternalServerError")
        if fate == "conflict":
            return refuse(handler, 400, "TransactionCanceledException", CancellationReasons=[{"Code": "TransactionConflict"}])
        if fate == "reset":
            return hang_up(handler)
        if fate == "silent":
            handler.connection.settimeout(SILENCE)
            try:
                handler.rfile.read(1)
            except OSError:
                pass
            return hang_up(handler)
        then = None
        if self.flaw and operation == WRITE:
            body, then = self.flaw(body)
        status, kind, answer = self.forward(handler.path, headers, body)
        if then and status == 200:
            self.forward(handler.path, headers, then)
        if fate == "twice":
            # As if the network had sent it again: what counts for the client is the last answer.
            status, kind, answer = self.forward(handler.path, headers, body)
        if fate in ("lost", "echoed"):
            if fate == "echoed":
                with self.lock:
                    self.late.append((handler.path, headers, forgotten(body)))
            return hang_up(handler)
        return answer_with(handler, status, kind, answer)

    def forward(self, path, headers, body):
        connection = HTTPConnection(self.host, self.port, timeout=30)
        try:
            connection.request("POST", path, body, {**headers, "content-length": str(len(body))})
            response = connection.getresponse()
            return response.status, response.getheader("content-type", "application/x-amz-json-1.0"), response.read()
        finally:
            connection.close()

    def never(self):
        """What should have befallen requests in bad weather ten times and more by its chances, and never did."""
        writes, all_of_table = self.asked[WRITE], sum(n for name, n in self.asked.items() if name not in OF_STATES)
        expected = {kind: chance * all_of_table for kind, chance in WEATHER.items()}
        expected |= {kind: chance * writes for kind, chance in WEATHER_OF_WRITES.items()}
        for operation in OF_STATES:
            expected |= {f"{operation} {kind}": chance * self.asked[operation] for kind, chance in WEATHER_OF_STATES.items()}
        return [kind for kind, times in expected.items() if times > 10 and not self.befell[kind]]

    def deliver_late(self):
        """Requests that were applied arrive once more, their tokens forgotten. Returns how many the table refused."""
        with self.lock:
            late, self.late = self.late, []
        answers = [self.forward(*request) for request in late]
        assert all(status != 200 for status, _, _ in answers), "a request was applied twice"
        return len(answers)


# Flaws.


def without_conditions(body):
    """A table that writes whatever it is sent."""
    request = json.loads(body)
    kept = []
    for item in request["TransactItems"]:
        (action, inside), = item.items()
        if action != "ConditionCheck":
            inside.pop("ConditionExpression", None)
            expression = inside.get("UpdateExpression", "")
            for names in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
                used = {name: value for name, value in inside.pop(names, {}).items() if re.search(re.escape(name) + r"\b", expression)}
                inside.update({names: used} if used else {})
            kept.append(item)
    request["TransactItems"] = kept
    return json.dumps(request).encode(), None


def ledger_apart(lost):
    """A table whose ledger rows are written outside the transaction, and get lost as often as `lost()` says so."""
    def flaw(body):
        request = json.loads(body)
        is_ledger = lambda item: "#IDEM#" in item.get("Put", {}).get("Item", {}).get("PK", {}).get("S", "")
        rows = [item for item in request["TransactItems"] if is_ledger(item)]
        if not rows:
            return body, None
        apart = {"TransactItems": rows, "ClientRequestToken": request["ClientRequestToken"][::-1]}
        request["TransactItems"] = [item for item in request["TransactItems"] if not is_ledger(item)]
        return json.dumps(request).encode(), None if lost() else json.dumps(apart).encode()

    return flaw


def forgotten(body):
    request = json.loads(body)
    request["ClientRequestToken"] = request["ClientRequestToken"][::-1]
    return json.dumps(request).encode()


def refuse(handler, status, code, **more):
    answer = json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "made up", **more}).encode()
    answer_with(handler, status, "application/x-amz-json-1.0", answer)


def answer_with(handler, status, kind, answer):
    handler.send_response(status)
    handler.send_header("content-type", kind)
    handler.send_header("content-length", str(len(answer)))
    handler.end_headers()
    handler.wfile.write(answer)


def hang_up(handler):
    handler.close_connection = True
    handler.connection.close()
