"""The wire itself: every protocol revision from one endpoint, and the tool list as a model gets it."""
import json

import pump
from client import Client, expect, new_key
from harness import Server, case, run_cases

LEGACY = ("2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
TOOLS = ["find_work", "get_status", "start_workflow", "submit_step", "check_value", "correct_step", "skip_step",
         "report_problem", "transfer_workflow", "finish_workflow", "resolve_block"]
READ_ONLY = {"find_work", "get_status", "check_value"}
DESTRUCTIVE = {"transfer_workflow", "finish_workflow", "resolve_block"}
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "outside", "version": "1"}}


def post(server, message, **headers):
    """(status, headers, JSON): one message with just the headers given, beside the types."""
    sent = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    status, found, body = server.request("POST", "/mcp", json.dumps(message), sent)
    return status, found, json.loads(body) if body else None


def modern(server, method, params=None, name=None, meta=None, **headers):
    """One 2026-07-28 request with its metadata and headers, each of which may be overridden."""
    sent = {"mcp_protocol_version": MODERN, "mcp_method": method, **({"mcp_name": name} if name else {}), **headers}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**(params or {}), "_meta": META if meta is None else meta}}
    return post(server, body, **{key: value for key, value in sent.items() if value is not None})


def compact(value):
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False))


@case("legacy revisions negotiate what they ask for; an unknown one gets one of ours")
def negotiation():
    with Server() as server:
        for asked in (*LEGACY, "2024-01-01"):
            params = {"protocolVersion": asked, "capabilities": {"roots": {"listChanged": True}}, "clientInfo": {"name": "x", "version": "1"}}
            status, found, reply = post(server, {"jsonrpc": "2.0", "id": "a-1", "method": "initialize", "params": params})
            assert status == 200 and reply["id"] == "a-1" and "mcp-session-id" not in found, (asked, status, reply)
            given = reply["result"]["protocolVersion"]
            assert given == asked if asked in LEGACY else given in LEGACY, (asked, given)
            assert "tools" in reply["result"]["capabilities"] and reply["result"]["instructions"], reply
            status, _, _ = post(server, {"jsonrpc": "2.0", "method": "notifications/initialized"}, mcp_protocol_version=given)
            assert status == 202
            status, _, reply = post(server, {"jsonrpc": "2.0", "id": 1, "method": "ping"}, mcp_protocol_version=given)
            assert status == 200 and reply["result"] == {}, reply


@case("no handshake, no session, no version header, string ids: every call answers")
def stateless():
    with Server() as server:
        checker = Client(server)
        for number, headers in enumerate(({}, *({"mcp_protocol_version": version} for version in LEGACY))):
            status, _, reply = post(server, {"jsonrpc": "2.0", "id": "x", "method": "tools/list"}, **headers)
            assert status == 200 and [tool["name"] for tool in reply["result"]["tools"]] == TOOLS, reply
            call = {"name": "start_workflow", "arguments": pump.start_arguments(f"PUMP-{number + 1}", key=new_key())}
            status, _, reply = post(server, {"jsonrpc": "2.0", "id": "y", "method": "tools/call", "params": call}, **headers)
            assert status == 200 and reply["id"] == "y", reply
            expect(checker.checked_answer("start_workflow", reply["result"]).out, "started")


@case("2026-07-28: discover, list and call with their metadata; results name their type and lists their age")
def discover():
    with Server() as server:
        status, _, reply = modern(server, "server/discover")
        result = reply["result"]
        assert status == 200 and MODERN in result["supportedVersions"] and result["resultType"], reply
        assert "ttlMs" in result and "cacheScope" in result, reply
        status, _, reply = modern(server, "tools/list")
        assert status == 200 and reply["result"]["resultType"] and "ttlMs" in reply["result"] and "cacheScope" in reply["result"], reply
        params = {"name": "find_work", "arguments": {}}
        status, _, reply = modern(server, "tools/call", params, name="find_work")
        assert status == 200 and reply["result"]["resultType"] == "complete", reply
        expect(Client(server).checked_answer("find_work", reply["result"]).out, "list")


@case("2026-07-28: headers that contradict the body are 400 -32020, an unknown version 400 -32022, an unknown method 404 -32601")
def modern_errors():
    with Server() as server:
        params = {"name": "find_work", "arguments": {}}
        for change in ({"mcp_method": "tools/list"}, {"mcp_method": None}, {"mcp_name": "get_status"}, {"mcp_name": None}):
            status, _, reply = modern(server, "tools/call", params, **{"mcp_name": "find_work", **change})
            assert status == 400 and reply["error"]["code"] == -32020, (change, status, reply)
        unknown = {**META, "io.modelcontextprotocol/protocolVersion": "2031-01-01"}
        status, _, reply = modern(server, "tools/list", meta=unknown, mcp_protocol_version="2031-01-01")
        assert status == 400 and reply["error"]["code"] == -32022 and MODERN in reply["error"]["data"]["supported"], (status, reply)
        status, _, reply = modern(server, "no/such/method")
        assert status == 404 and reply["error"]["code"] == -32601, (status, reply)
        status, _, reply = modern(server, "tools/list", meta={})
        assert status == 400 and reply["error"]["code"] in (-32602, -32020), (status, reply)
        status, _, reply = modern(server, "tools/call", {"name": "no_such_tool", "arguments": {}}, name="no_such_tool")
        assert reply["error"]["code"] == -32602, (status, reply)


@case("the tool list is small, closed, annotated, and the same for everybody")
def tool_list():
    with Server() as server, Server() as twin:
        tools = Client(server).rpc("tools/list")["result"]["tools"]
        assert tools == Client(twin).rpc("tools/list")["result"]["tools"], "the list depends on the process"
        names = [tool["name"] for tool in tools]
        assert names == TOOLS, names
        bare = [{k: v for k, v in tool.items() if k != "outputSchema"} for tool in tools]
        assert compact(bare) <= 12_000 and compact(tools) <= 18_000, (compact(bare), compact(tools))
        for tool in tools:
            name, given, output, notes = tool["name"], tool["inputSchema"], tool["outputSchema"], tool["annotations"]
            assert tool["title"] and tool["description"], name
            assert given["type"] == "object" and given["additionalProperties"] is False and len(given["properties"]) <= 8, name
            assert compact(output) <= 600 and {"ok", "outcome", "duplicate", "speech"} <= set(output["required"]), name
            assert output.get("additionalProperties", True) is not False, f"{name}: the envelope must stay open"
            assert not {"$ref", "format", "$defs", "nullable"} & set(every_key(output)), name
            assert notes["readOnlyHint"] is (name in READ_ONLY) and notes["destructiveHint"] is (name in DESTRUCTIVE), (name, notes)
            assert notes["idempotentHint"] is True and notes["openWorldHint"] is False, (name, notes)
            assert name in READ_ONLY or "idempotency_key" in given["properties"], name


def every_key(node):
    if isinstance(node, dict):
        for key, value in node.items():
            yield key
            yield from every_key(value)
    elif isinstance(node, list):
        for value in node:
            yield from every_key(value)


if __name__ == "__main__":
    run_cases()
