"""A minimal MCP client over plain HTTP, and how a careful person answers a step.

It knows the generic result shape only, no procedure. Every answer it gets is checked by answers.py.
"""
import json
import re
import uuid
from decimal import Decimal
from http.client import HTTPConnection

import answers
from harness import exchange

REVISION = "2025-11-25"


class HttpStatus(Exception):
    """The endpoint answered another status than 200."""

    def __init__(self, status, headers, body):
        super().__init__(f"HTTP {status}: {body[:400]!r}")
        self.status, self.headers, self.body = status, headers, body


class Answer:
    """One tool result: `out` is the structured content, `text` the same JSON as the server wrote it."""

    def __init__(self, tool, result):
        content = result["content"]
        self.tool, self.out, self.text = tool, result["structuredContent"], content[1]["text"]
        assert content[0]["type"] == "text" and content[0]["text"] == self.out["speech"], f"{tool}: content[0] is the speech: {content[0]}"
        assert json.loads(self.text) == self.out, f"{tool}: content[1] is the structured content as text"
        assert bool(result.get("isError")) == (not self.out["ok"]), f"{tool}: isError is the opposite of ok"

    def stored(self):
        """The bytes that a replay must repeat; only `duplicate` may differ."""
        found = re.subn(r'"duplicate": ?(true|false)', '"duplicate":*', self.text, count=1)
        assert found[1] == 1, self.text
        return found[0]


class Client:
    """A minimal MCP client of one legacy revision, without a session."""

    schemas = {}

    def __init__(self, server, keep_alive=False, checked=True):
        self.server, self.checked, self.number = server, checked, 0
        self.connection = HTTPConnection("127.0.0.1", server.port, timeout=60) if keep_alive else None
        self.headers = {"content-type": "application/json", "accept": "application/json, text/event-stream",
                        "mcp-protocol-version": REVISION}

    def post(self, body, headers=None, timeout=60):
        """A raw body to the endpoint. A header given as None is left out."""
        merged = {k: v for k, v in {**self.headers, **(headers or {})}.items() if v is not None}
        if self.connection is None:
            return self.server.request("POST", "/mcp", body, merged, timeout)
        try:
            return exchange(self.connection, "POST", "/mcp", body, merged)
        except BaseException:
            self.connection.close()
            raise

    def rpc(self, method, params=None):
        """One request; returns the JSON-RPC reply."""
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params or {}}
        return self.reply(self.post(json.dumps(message)), self.number)

    @staticmethod
    def reply(response, number):
        status, headers, body = response
        if status != 200:
            raise HttpStatus(status, headers, body)
        assert headers["content-type"].split(";")[0] == "application/json", headers
        reply = json.loads(body)
        assert reply["jsonrpc"] == "2.0" and reply["id"] == number, reply
        return reply

    def answer(self, tool, meta=None, **arguments):
        """Calls a tool, checks the answer against every rule, and returns it as an Answer."""
        params = {"name": tool, "arguments": arguments, **({"_meta": meta} if meta else {})}
        reply = self.rpc("tools/call", params)
        assert "result" in reply, f"{tool}: protocol error {reply['error']}"
        return self.checked_answer(tool, reply["result"])

    def checked_answer(self, tool, result):
        answer = Answer(tool, result)
        if self.checked:
            self.check(answer)
        return answer

    def check(self, answer):
        self.known_schemas().check(answer.tool, answer.out)
        answers.check_envelope(answer.tool, answer.out)

    def known_schemas(self):
        if self.server.port not in Client.schemas:
            Client.schemas[self.server.port] = answers.Schemas(self.rpc("tools/list")["result"]["tools"])
        return Client.schemas[self.server.port]

    def call(self, tool, **arguments):
        """Calls a tool and returns the structured content, errors included."""
        return self.answer(tool, **arguments).out


def new_key():
    return str(uuid.uuid4())


def expect_error(out, *codes):
    assert not out["ok"] and out["error"]["code"] in codes, f"expected {' or '.join(codes)}: {json.dumps(out)[:1200]}"
    return out["error"]


def expect(out, *outcomes, duplicate=None):
    assert out["outcome"] in outcomes, f"expected {' or '.join(outcomes)}: {json.dumps(out)[:1200]}"
    assert duplicate is None or out["duplicate"] is duplicate, f"expected duplicate {duplicate}: {json.dumps(out)[:1200]}"
    return out


# What a person who does everything right answers, from nothing but the step as it was told.


def good_value(step):
    kind = step["kind"]
    if kind == "number":
        low, high = (Decimal(step[bound]) for bound in ("min", "max"))
        return str(((low + high) / 2).quantize(smallest(step)))
    if kind == "choice":
        return step["choices"][0]["id"]
    return {"confirm": "yes", "text": "nothing to add", "wait": "done", "sign": "done"}[kind]


def smallest(step):
    """The smallest difference the step's digits can show."""
    return Decimal(1).scaleb(-int(step.get("decimals", 0)))


def too_high(step):
    """The first value above the accepted range."""
    return str(Decimal(step["max"]).quantize(smallest(step)) + smallest(step))


def step_arguments(view, value, key=None):
    """The arguments of submit_step for the step that a view says is open next."""
    step = view["step"]
    arguments = {"workflow_id": view["workflow"]["id"], "step_id": step["id"], "value": value}
    if step.get("unit"):
        arguments["unit"] = step["unit"]
    if key:
        arguments["idempotency_key"] = key
    return arguments


def submit(client, view, value=None, key=None):
    """Submits a value for the open step, reading it back if asked to; returns the answer."""
    arguments = step_arguments(view, value or good_value(view["step"]), key or new_key())
    out = client.call("submit_step", **arguments)
    if out["outcome"] == "needs_confirmation":
        out = client.call("submit_step", **arguments, confirm_token=out["confirm"]["token"])
    return out


def drive(client, view, stop=lambda view: False):
    """Submits good values until no step is open or stop(view); returns the last view."""
    for _ in range(200):
        if stop(view) or not view.get("step"):
            return view
        view = expect(submit(client, view), "recorded")
    raise AssertionError("the procedure does not end")
