"""`wf-cli serve --stdio`: one client on standard input and output, as desktop clients start a server.

The official Python client does whole inspections; one that is killed in the middle has lost nothing that was acknowledged.
The rest speaks lines by itself: strict reading, bounds, the end of the input, signals, and who is served at all.
"""
import asyncio
import json
import os
import pwd
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection

from mcp import Client as OfficialClient
from mcp.client.stdio import StdioServerParameters

import pump
from client import Client, expect, new_key
from harness import Server, binary, case, clean_environment, cli, run_cases, until
from official import Caller, inspect

LINE_MAX = 1_048_576
USER = pwd.getpwuid(os.geteuid()).pw_name


def command(server):
    """How a client starts it, over the state of a server that need not run."""
    return StdioServerParameters(command=binary(), args=["serve", "--stdio", "--config", server.config], env=clean_environment())


def made(**settings):
    """A configuration and the place of its state; started and ended once, so that the state is there."""
    server = Server(**settings)
    with server:
        return server


class Desk:
    """Speaks lines to its own process."""

    def __init__(self, server, *more, reads=True):
        self.errors = os.path.join(server.folder, f"stdio-{new_key()}.log")
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen([binary(), "serve", "--stdio", "--config", server.config, *more],
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=clean_environment())
        self.number = 0
        self.lines = queue.Queue()
        if reads:
            threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def write(self, text):
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def next(self, wait=20):
        return self.lines.get(timeout=wait)

    def send(self, method, params=None, number=None):
        self.number += 1
        number = self.number if number is None else number
        self.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}))
        return number

    def ask(self, method, params=None):
        number = self.send(method, params)
        answer = self.next()
        assert answer is not None, f"no answer to {method}: {self.log()}"
        assert answer["id"] == number, answer
        return answer

    def hello(self, revision="2025-11-25"):
        answer = self.ask("initialize", {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
        self.write('{"jsonrpc":"2.0","method":"notifications/initialized"}')
        assert answer["result"]["protocolVersion"] == revision, answer
        return self

    def start(self, asset, key):
        arguments = pump.start_arguments(asset=asset, key=key)
        return self.send("tools/call", {"name": "start_workflow", "arguments": arguments})

    def log(self):
        with open(self.errors, encoding="utf-8", errors="replace") as file:
            return file.read()

    def end(self, wait=40):
        """Ends the input; returns the exit code and what was still said."""
        self.process.stdin.close()
        said = self.rest(wait)
        return self.process.wait(wait), said

    def rest(self, wait=40):
        said = []
        while (line := self.next(wait)) is not None:
            said.append(line)
        return said

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@case("the official client, 2025-11-25: the whole inspection")
def legacy():
    server = made()
    asyncio.run(inspect(command(server), "legacy", "2025-11-25"))
    server.verify()


@case("the official client, 2026-07-28: the whole inspection")
def modern():
    server = made()
    asyncio.run(inspect(command(server), "auto", "2026-07-28"))
    server.verify()


@case("a client that is killed in the middle, again and again, has lost nothing that was acknowledged")
def killed():
    server = made()
    ends = os.path.join(server.folder, "victims.log")
    logs = []
    for kills in range(1, 7):
        # Each victim has a log of its own: a kill can tear the last line, and the next one would write on behind it.
        logs.append(os.path.join(server.folder, f"acknowledged-{kills}.jsonl"))
        with open(ends, "ab") as errors:
            victim = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--victim", server.config, logs[-1]],
                                      stdin=subprocess.DEVNULL, stderr=errors, stdout=errors)
        try:
            # Some acknowledgements more than before, so that it dies somewhere in the next call.
            until(lambda: len(acknowledged(logs)) >= 4 * kills or victim.poll() is not None, 60, "more acknowledgements")
            assert victim.poll() is None, open(ends, encoding="utf-8").read()[-2000:]
        finally:
            victim.kill()
            victim.wait()
        # Its server sees the end of its input, and ends politely.
        until(lambda: open(ends, encoding="utf-8").read().count(": stopped") == kills, 40, f"the end of server {kills}")
    asyncio.run(look_back(server, acknowledged(logs)))
    server.verify()


def acknowledged(logs):
    """What the victims wrote down, without a torn last line."""
    pairs = []
    for log in filter(os.path.exists, logs):
        with open(log, encoding="utf-8") as file:
            pairs.extend(json.loads(line) for line in file if line.endswith("\n"))
    return pairs


async def victim(config, log):
    """Starts inspections one after the other until it is killed; writes down each answer before it asks for the next."""
    parameters = StdioServerParameters(command=binary(), args=["serve", "--stdio", "--config", config], env=clean_environment())
    async with OfficialClient(parameters, mode="legacy") as official:
        with open(log, "a", encoding="utf-8") as file:
            while True:
                arguments = pump.start_arguments(asset=f"PUMP-{random.randrange(10**6)}", key=new_key())
                result = await official.call_tool("start_workflow", arguments)
                out = result.structured_content
                assert out["outcome"] == "started", out
                file.write(json.dumps({"arguments": arguments, "out": out}) + "\n")
                file.flush()


async def look_back(server, pairs):
    """Each acknowledged call, sent again, is answered with what was acknowledged."""
    assert len(pairs) >= 24, len(pairs)
    async with OfficialClient(command(server), mode="legacy") as official:
        caller = await Caller.of(official)
        for pair in pairs:
            again = (await caller.call("start_workflow", **pair["arguments"])).out
            expect(again, "started", duplicate=True)
            assert {**again, "duplicate": False} == pair["out"], again


@case("what was sent before the input ended is done and answered, and the exit code is 0")
def end_of_input():
    server = made()
    with Desk(server) as desk:
        desk.hello()
        numbers = {desk.start(f"PUMP-{i}", f"k{i}") for i in range(100)}
        code, said = desk.end()
    assert code == 0, desk.log()[-1500:]
    assert {line["id"] for line in said} == numbers, f"{len(said)} answers of {len(numbers)}"
    assert all(line["result"]["structuredContent"]["outcome"] == "started" for line in said), said
    server.verify()


@case("SIGTERM and SIGINT end it with an open input, and what was begun is done and answered")
def signals():
    for how in (signal.SIGTERM, signal.SIGINT):
        server = made()
        with Desk(server) as desk:
            desk.hello()
            for i in range(100):
                desk.start(f"PUMP-{i}", f"k{i}")
            first = desk.next()
            desk.process.send_signal(how)
            said = [first, *desk.rest()]
            code = desk.process.wait(40)
        assert code == 0, (how, code, desk.log()[-1500:])
        assert all(line["result"]["structuredContent"]["outcome"] == "started" for line in said), said
        # Whatever was answered is there, and what is there was answered.
        code, text = cli("workflow", "list", "--json", "--config", server.config)
        assert code == 0, text
        listed = json.loads(text)
        listed = listed["workflows"] if isinstance(listed, dict) else listed
        assert len(listed) == len(said), (len(listed), len(said))
        server.verify()


@case("an idle server ends on SIGTERM at once, before a client has said anything and after")
def idle():
    server = made()
    for greet in (False, True):
        with Desk(server) as desk:
            if greet:
                desk.hello()
            else:
                until(lambda: "standard input and output" in desk.log(), what="its first words")
            began = time.monotonic()
            desk.process.send_signal(signal.SIGTERM)
            assert desk.process.wait(20) == 0, desk.log()
            assert time.monotonic() - began < 10, desk.log()


@case("a client that closes its end of the output only is one that is gone")
def no_reader():
    server = made()
    with Desk(server, reads=False) as desk:
        desk.send("ping")
        assert json.loads(desk.process.stdout.readline())["result"] == {}
        desk.process.stdout.close()
        # It may have to write twice before it is told.
        for _ in range(3):
            try:
                desk.send("ping")
            except BrokenPipeError:
                break
        assert desk.process.wait(30) == 0, desk.log()[-1500:]


@case("lines are read as strictly as bodies, and a bad one harms no other")
def strict():
    server = made()
    with Desk(server) as desk:
        desk.write('{"jsonrpc":"2.0","method":"notifications/initialized"}')  # before anything else: told to nobody
        desk.hello()
        for text, code in [
            ("{", -32700), ("nonsense", -32700), ("[]", -32600), ("[1,2]", -32600), ('"x"', -32600), ("{}", -32600),
            ('{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600), ('{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
            ('{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600), ('{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32600),
            ('{"jsonrpc":"2.0","id":1,"method":"no/such"}', -32601), ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}', -32602),
            ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"no_such"}}', -32602),
            ('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}', -32602),
            ('{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":1}}', -32602),
            ('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + "y" * 70_000 + '"}}', -32600),
            ("x" * (LINE_MAX + 1), -32600), ("[" * 200_000, -32600), ("\xff\xfe", -32700),
        ]:
            desk.write(text)
            answer = desk.next()
            assert answer["error"]["code"] == code, (text[:80], answer)
        # Arguments that are unsafe to hash are the tool's to refuse, as over HTTP.
        desk.write('{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"find_work","arguments":{"query":"x","query":"y"}}}')
        answer = desk.next()
        assert answer["result"]["structuredContent"]["error"]["code"] == "VALIDATION_ERROR", answer
        # Nothing is said to these.
        for text in ("", "   ", "\r", '{"jsonrpc":"2.0","id":7,"result":{}}', '{"jsonrpc":"2.0","method":"notifications/whatever"}',
                     '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}'):
            desk.write(text)
        padded = json.dumps({"jsonrpc": "2.0", "id": "b", "method": "tools/list"}).ljust(LINE_MAX)
        desk.write(padded)
        assert desk.next()["id"] == "b"
        desk.write('{"jsonrpc":"2.0","id":"c","method":"ping"}\r')
        assert desk.next() == {"jsonrpc": "2.0", "id": "c", "result": {}}
        code, said = desk.end()
        assert (code, said) == (0, []), (code, said)


MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
          "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"}}


@case("a subscription tells of changes, holds its id, and neither stops others nor the end")
def subscription():
    server = made()
    with Desk(server) as desk:
        call = {"name": "start_workflow", "arguments": pump.start_arguments(key=new_key()), "_meta": MODERN}
        view = desk.ask("tools/call", call)["result"]["structuredContent"]
        address = f"workflow://workflows/{view['workflow']['id']}"
        wanted = {"notifications": {"resourceSubscriptions": [address]}, "_meta": MODERN}
        desk.send("subscriptions/listen", wanted, number=1000)
        assert desk.next()["method"] == "notifications/subscriptions/acknowledged"
        desk.send("subscriptions/listen", wanted, number=1000)
        refused = desk.next()
        assert refused["error"]["code"] == -32600 and "no answer yet" in refused["error"]["message"], refused
        step = {"workflow_id": view["workflow"]["id"], "step_id": view["step"]["id"], "value": "yes",
                "idempotency_key": view["next_idempotency_key"]}
        desk.send("tools/call", {"name": "submit_step", "arguments": step, "_meta": MODERN}, number=7)
        said = [desk.next(), desk.next()]
        told = [line for line in said if line.get("method") == "notifications/resources/updated"]
        assert [line["params"]["uri"] for line in told] == [address], said
        assert [line["result"]["structuredContent"]["outcome"] for line in said if line.get("id") == 7] == ["recorded"], said
        began = time.monotonic()
        code, said = desk.end()
        assert code == 0 and time.monotonic() - began < 4, (code, time.monotonic() - began, desk.log()[-1500:])
        # Its final result, if there is any, is all that is still said.
        assert all(line.get("id") == 1000 for line in said), said


@case("too many subscriptions are refused, and one that is cancelled makes room")
def subscriptions():
    server = made()
    with Desk(server) as desk:
        call = {"name": "start_workflow", "arguments": pump.start_arguments(key=new_key()), "_meta": MODERN}
        view = desk.ask("tools/call", call)["result"]["structuredContent"]
        address = f"workflow://workflows/{view['workflow']['id']}"
        wanted = {"notifications": {"resourceSubscriptions": [address]}, "_meta": MODERN}
        for number in range(101, 165):
            desk.send("subscriptions/listen", wanted, number=number)
        until(lambda: desk.lines.qsize() >= 64, what="64 answers")
        answers = [desk.next() for _ in range(64)]
        assert all(line.get("method") or line["error"]["code"] for line in answers), answers
        held = sum("method" in line for line in answers)
        assert held, answers
        if held == 64:
            desk.send("subscriptions/listen", wanted, number=165)
            refused = desk.next()
            assert refused["error"]["code"] == -32600 and "too many" in refused["error"]["message"], refused
        desk.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 101}}))

        def room():
            desk.send("subscriptions/listen", wanted, number=166)
            return "method" in desk.next()

        until(room, what="room for another")
        assert desk.end()[0] == 0, desk.log()[-1500:]


@case("what is called belongs to the user of the operating system, and nothing is listened on")
def who():
    server = made()
    with Desk(server) as desk:
        desk.hello()
        desk.start("PUMP-1", "k")
        view = desk.next()["result"]["structuredContent"]
        assert view["workflow"]["owner"]["id"] == USER, view["workflow"]
        try:
            connection = HTTPConnection("127.0.0.1", server.port, timeout=5)
            connection.request("GET", "/healthz")
            raise AssertionError(f"somebody listens on {server.port}")
        except ConnectionRefusedError:
            pass
        assert desk.end()[0] == 0
        assert f"as user:{USER}" in desk.log(), desk.log()


@case("with --listen there is a listener too, on the same state, and both end together")
def both():
    server = made()
    with Desk(server, "--listen", f"127.0.0.1:{server.port}") as desk:
        desk.hello()
        desk.start("PUMP-1", "k")
        started = desk.next()["result"]["structuredContent"]
        seen = Client(server).call("get_status", workflow_id=started["workflow"]["id"])
        assert seen["workflow"]["owner"]["id"] == USER, seen
        assert desk.end()[0] == 0
        assert "answered" in desk.log()


@case("tokens are refused where none can come, and asked for by a listener beside it")
def tokens():
    server = Server()
    for more in (["--auth", "dev"], ["--auth", "jwt", "--set", "auth.issuer=https://auth.example.com",
                                     "--set", "server.public_url=https://wf.example.com"]):
        code, text = cli("serve", "--stdio", "--config", server.config, *more)
        assert code == 2 and "no token comes over standard input" in text, (code, text)
    server = made()
    with Desk(server, "--auth", "dev", "--listen", f"127.0.0.1:{server.port}") as desk:
        desk.hello()
        desk.start("PUMP-1", "k")
        assert desk.next()["result"]["structuredContent"]["outcome"] == "started"
        status, _, _ = server.request("POST", "/mcp", b"{}", {"content-type": "application/json"})
        assert status == 401, status


if __name__ == "__main__":
    if sys.argv[1:2] == ["--victim"]:
        asyncio.run(victim(*sys.argv[2:]))
    else:
        run_cases()
