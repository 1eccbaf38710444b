"""A peer's server process and the connection to it: started, killed with -9, started again on the same state.

The official MCP client speaks over standard input and output (`Stdio`) or HTTP (`Http`); `Plain` is for engines that are no
MCP servers and have an HTTP interface of their own. script.py kills; the adapters in peers/ call.
"""
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import AsyncExitStack
from contextvars import ContextVar
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

# Seconds. A call that takes longer has no answer; a server that takes longer is not there.
ANSWER, READY = 60.0, 240.0
# Which caller calls: its number. Set by the script in each caller's task.
CALLER = ContextVar("caller", default=0)


class Gone(Exception):
    """The call has no answer: the server died, the connection broke, or it took too long."""


class Refused(Exception):
    """The server answered that it did not do what was asked."""


class Busy(Refused):
    """Somebody else holds the asset."""


class NotReady(Exception):
    """The server did not start."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Incarnation:
    """A server from one start to its end. `dead` is set before it is killed, so that no waiting call waits on."""

    def __init__(self):
        self.ready, self.dead, self.leave = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.fault, self.task, self.pid, self.clients = None, None, None, []

    @property
    def client(self):
        """The connection of whoever calls; over standard input and output all share one."""
        return self.clients[CALLER.get() % len(self.clients)]

    async def guard(self, awaitable, seconds=ANSWER):
        """The value of `awaitable`, or Gone if this server ends first."""
        call, dead = asyncio.ensure_future(awaitable), asyncio.ensure_future(self.dead.wait())
        try:
            done, _ = await asyncio.wait({call, dead}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if call in done:
                return call.result()
            raise Gone("the server was killed" if self.dead.is_set() else f"no answer within {seconds:.0f} s")
        finally:
            dead.cancel()
            if not call.done():
                call.cancel()
                call.add_done_callback(lambda ended: ended.cancelled() or ended.exception())


class Server:
    """What all three kinds share. `command` is run in `folder`, and once more after each kill."""

    def __init__(self, command, folder, environment=None):
        self.command, self.folder = [str(word) for word in command], Path(folder)
        self.environment = {**os.environ, "NO_COLOR": "1", **(environment or {})}
        self.now = None

    def log(self):
        return open(self.folder / "server.log", "ab")

    async def start(self):
        now = Incarnation()
        now.task = asyncio.create_task(self.live(now))
        waits = [asyncio.ensure_future(now.ready.wait()), now.task]
        await asyncio.wait(waits, timeout=READY, return_when=asyncio.FIRST_COMPLETED)
        waits[0].cancel()
        if not now.ready.is_set():
            await self.end(now)
            tail = (self.folder / "server.log").read_text(errors="replace")[-1500:]
            raise NotReady(f"{now.fault!r}; end of its log: {tail}")
        self.now = now

    async def kill(self):
        """kill -9 of the server and all that it started."""
        if self.now:
            await self.end(self.now)

    async def end(self, now):
        now.dead.set()
        kill_group(now.pid)
        now.leave.set()
        if now.task:
            await asyncio.wait({now.task}, timeout=20)
        if self.now is now:
            self.now = None

    async def live(self, now):
        try:
            await self.run(now)
        except BaseException as fault:  # Also groups of faults of the client's tasks; a fault after a kill is the kill.
            now.fault = fault
            if isinstance(fault, asyncio.CancelledError):
                raise
        finally:
            now.dead.set()
            kill_group(now.pid)

    async def run(self, now):
        raise NotImplementedError

    def running(self):
        return self.now is not None and not self.now.dead.is_set()

    def current(self):
        if not self.running():
            raise Gone("the server is not there")
        return self.now


def kill_group(pid):
    if pid:
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Speaking(Server):
    """A server that speaks MCP."""

    async def hold(self, now, targets, mode):
        async with AsyncExitStack() as stack:
            for target in targets:
                now.clients.append(await stack.enter_async_context(Client(target, mode=mode, read_timeout_seconds=READY)))
            now.ready.set()
            await now.leave.wait()

    async def call(self, tool, **arguments):
        """The structured content of the answer, or its text read as JSON, or its text. Refused if it is an error."""
        now = self.current()
        try:
            result = await now.guard(now.client.call_tool(tool, arguments))
        except MCPError as fault:
            if fault.code == CONNECTION_CLOSED and not isinstance(self, Http):
                now.dead.set()  # The only connection is over, and with it the process that was its other end.
            if fault.code in (CONNECTION_CLOSED, REQUEST_TIMEOUT) or not alive(now.pid):
                raise Gone(str(fault)) from fault
            raise Refused(str(fault)) from fault
        except (Gone, asyncio.CancelledError):
            raise
        except Exception as fault:
            raise Gone(repr(fault)) from fault
        text = "\n".join(part.text for part in result.content if part.type == "text")
        if result.is_error:
            raise Refused(text or json.dumps(result.structured_content))
        if result.structured_content is not None:
            return result.structured_content
        try:
            return json.loads(text)
        except ValueError:
            return text

    async def tools(self):
        now = self.current()
        return (await now.guard(now.client.list_tools())).tools


def alive(pid):
    try:
        os.killpg(pid, 0)
    except (ProcessLookupError, TypeError):
        return False
    return True


class Stdio(Speaking):
    """One process that all callers share, as the clients of one host share it."""

    async def run(self, now):
        pid = self.folder / "server.pid"
        pid.unlink(missing_ok=True)
        # The client tells nobody the process id, so the shell writes down its own and becomes the server.
        words = ["-c", 'echo $$ >"$0.part" && mv "$0.part" "$0" && exec "$@"', str(pid), *self.command]
        parameters = StdioServerParameters(command="/bin/sh", args=words, env=self.environment, cwd=self.folder)
        with open(self.folder / "server.log", "a", encoding="utf-8") as log:
            watch = asyncio.create_task(self.learn(now, pid))
            try:
                await self.hold(now, [stdio_client(parameters, errlog=log)], "legacy")
            finally:
                watch.cancel()

    @staticmethod
    async def learn(now, path):
        while not path.exists():
            await asyncio.sleep(0.01)
        now.pid = int(path.read_text())


class Spawned(Speaking):
    """A server with a port: started here, ready when `address` answers a connection."""

    def __init__(self, command, folder, port, environment=None):
        super().__init__(command, folder, environment)
        self.port = port

    async def run(self, now):
        with self.log() as log:
            process = subprocess.Popen(self.command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log, start_new_session=True)
        now.pid = process.pid
        try:
            await self.listening(now, process)
            await self.serve(now)
        finally:
            kill_group(process.pid)
            await asyncio.to_thread(process.wait)

    async def listening(self, now, process):
        while not now.leave.is_set():
            if process.poll() is not None:
                raise NotReady(f"ended with exit code {process.returncode}")
            if await asyncio.to_thread(self.answers):
                return
            await asyncio.sleep(0.05)
        raise NotReady("not in time")

    def answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    async def serve(self, now):
        raise NotImplementedError


class Http(Spawned):
    """Streamable HTTP at /mcp, with a connection for each caller, and the headers of each caller."""

    def __init__(self, command, folder, port, headers=({},), environment=None):
        super().__init__(command, folder, port, environment)
        self.headers = headers

    async def serve(self, now):
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=ANSWER)) for headers in self.headers]
            url = f"http://127.0.0.1:{self.port}/mcp"
            await self.hold(now, [streamable_http_client(url, http_client=client) for client in clients], "auto")


class Plain(Spawned):
    """An engine with an HTTP interface of its own."""

    async def serve(self, now):
        await self.prepare()
        now.ready.set()
        await now.leave.wait()

    async def prepare(self):
        """What must be done after each start."""

    async def call(self, path, body, headers=None, method="POST"):
        """(status, answer read as JSON)."""
        now = self.current()
        try:
            return await now.guard(asyncio.to_thread(exchange, self.port, method, path, body, headers))
        except (OSError, HTTPException) as fault:
            raise Gone(repr(fault)) from fault


def exchange(port, method, path, body, headers=None):
    connection = HTTPConnection("127.0.0.1", port, timeout=ANSWER)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), {"content-type": "application/json", **(headers or {})})
        response = connection.getresponse()
        data = response.read()
    finally:
        connection.close()
    try:
        return response.status, json.loads(data) if data else None
    except ValueError:
        return response.status, data.decode(errors="replace")


if __name__ == "__main__":
    sys.exit("start compare.py")
