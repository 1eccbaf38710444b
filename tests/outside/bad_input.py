"""Bad requests over HTTP: each gets a clear typed answer, changes nothing, and the same process goes on serving.

Layers from outside in: HTTP, JSON-RPC, arguments, domain. Bad files and databases are in bad_setup.py.
"""
import json
import socket
import time

import pump
from client import Client, expect, expect_error, good_value, new_key, step_arguments, submit
from harness import Server, case, run_cases, talk

_shared = {}


def server():
    if "server" not in _shared:
        _shared["server"] = Server(server='request_timeout = "3s"').start()
        _shared["spare"] = iter(range(500, 1000))
        _shared["pid"] = _shared["server"].process.pid
        _shared["view"] = pump.at_number(Client(_shared["server"]), "PUMP-1")
    return _shared["server"]


def client():
    return Client(server())


def view():
    server()
    return _shared["view"]


def still_serving():
    """The same process answers, the open workflow is untouched, and the store verifies."""
    assert server().alive() and server().process.pid == _shared["pid"], server().log_text()[-1500:]
    assert server().request("GET", "/readyz")[0] == 200
    before, now = view(), client().call("get_status", workflow_id=view()["workflow"]["id"])
    server().verify()
    if now["workflow"]["revision"] != before["workflow"]["revision"]:
        _shared["view"] = pump.at_number(client(), f"PUMP-{next(_shared['spare'])}")  # The cases after this one start clean.
        raise AssertionError(f"a bad request wrote something: {now['last_recorded']}")


def message(**changes):
    base = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_status", "arguments": {}}}
    return {**base, **changes}


def raw(name, arguments_text):
    """A tools/call whose arguments are JSON text as given, duplicates and all."""
    return f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{arguments_text}}}}}'


def post(body, **headers):
    """(status, headers, JSON body or None)."""
    text = body if isinstance(body, (str, bytes)) else json.dumps(body)
    status, found, answer = client().post(text, {name.replace("_", "-"): value for name, value in headers.items()})
    return status, found, json.loads(answer) if answer[:1] in (b"{", b"[") else None


def head(*lines, method="POST", path="/mcp", host=True):
    first = [f"{method} {path} HTTP/1.1"] + ([f"Host: 127.0.0.1:{server().port}"] if host else [])
    return "\r\n".join([*first, *lines, "", ""]).encode()


# HTTP.


@case("HTTP: anything but POST on the endpoint is 405, an unknown path is 404")
def methods():
    for method in ("GET", "DELETE", "PUT", "PATCH", "HEAD"):
        status, found, _ = server().request(method, "/mcp", headers={"accept": "text/event-stream"})
        assert status == 405 and "POST" in found.get("allow", "POST"), (method, status, found)
    assert server().request("GET", "/no/such/path")[0] == 404
    still_serving()


@case("HTTP: a foreign Host or Origin is 403; none or two Hosts are refused")
def hosts():
    body = json.dumps(message())
    for name in ("evil.example", f"evil.example:{server().port}", "127.0.0.1.evil.example"):
        assert post(body, host=name)[0] == 403, name
    for origin in ("https://evil.example", "null", f"http://127.0.0.1.evil.example:{server().port}"):
        assert post(body, origin=origin)[0] == 403, origin
    assert post(body, origin=f"http://127.0.0.1:{server().port}")[0] == 200, "the server's own origin"
    rest = ["Content-Type: application/json", "Accept: application/json, text/event-stream", f"Content-Length: {len(body)}"]
    for hosts_sent in ([], [f"Host: 127.0.0.1:{server().port}", "Host: evil.example"]):
        status, closed, _ = talk(server().port, head(*hosts_sent, *rest, host=False) + body.encode())
        assert status in (400, 403, 421) or (status is None and closed), (hosts_sent, status)
    still_serving()


@case("HTTP: another content type is 415; a charset is fine")
def content_type():
    for kind in ("text/plain", "application/x-www-form-urlencoded", None):
        assert post(message(), content_type=kind)[0] in (400, 415), kind
    assert post(message(), content_type="application/json; charset=utf-8")[0] == 200
    still_serving()


@case("HTTP: Accept may be missing, */*, application/json, or both types; the answer is JSON")
def accept():
    for kind in (None, "*/*", "application/json", "application/*", "application/json, text/event-stream", "text/event-stream, application/json;q=0.5"):
        status, found, answer = post(message(), accept=kind)
        assert status == 200 and found["content-type"].startswith("application/json") and "result" in answer, (kind, status, answer)
    still_serving()


@case("HTTP: an oversized body is 413, announced or chunked")
def oversized():
    big = json.dumps(message(params={"name": "get_status", "arguments": {"workflow_id": "x" * 2_000_000}})).encode()
    common = ["Content-Type: application/json", "Accept: */*"]
    status, _, _ = talk(server().port, head(*common, f"Content-Length: {len(big)}"))
    assert status == 413, f"announced: {status}"
    # Exactly the limit and one byte: the server has read all that was sent when it refuses.
    chunk = b"%x\r\n%b\r\n" % (65536, b" " * 65536)
    status, _, _ = talk(server().port, head(*common, "Transfer-Encoding: chunked") + chunk * 16 + b"1\r\n \r\n")
    assert status == 413, f"chunked: {status}"
    still_serving()


@case("HTTP: headers that are too large are 431")
def headers_too_large():
    status, _, _ = talk(server().port, head("X-Filler: " + "a" * 300_000, "Content-Length: 0"))
    assert status == 431, f"one large header: {status}"
    status, _, _ = talk(server().port, head(*[f"X-{i}: a" for i in range(2_000)], "Content-Length: 0"))
    assert status == 431, f"many headers: {status}"
    still_serving()


@case("HTTP: a body or header that never comes ends in 408 or a closed connection")
def slow():
    began = time.monotonic()
    status, closed, _ = talk(server().port, head("Content-Type: application/json", "Content-Length: 100") + b'{"', wait=20)
    assert status == 408 or (status is None and closed), f"slow body: status {status}, closed {closed}"
    assert time.monotonic() - began < 15, "a slow body held its connection"
    status, closed, _ = talk(server().port, b"POST /mcp HTTP/1.1\r\nHost: 127", wait=45)
    assert status == 408 or (status is None and closed), f"slow headers: status {status}, closed {closed}"
    still_serving()


@case("HTTP: nonsense instead of HTTP, and a connection that says nothing")
def nonsense():
    for data in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64, b"hello\r\n\r\n", b"POST /mcp HTTP/9.9\r\n\r\n", b"\r\n" * 5000):
        status, closed, _ = talk(server().port, data, wait=40)
        assert (status or 400) >= 400 and (status or closed), (data[:20], status, closed)
    with socket.create_connection(("127.0.0.1", server().port)):
        still_serving()


@case("HTTP: an unknown protocol version is 400; a session id is no authority and none is given")
def version():
    status, _, answer = post(message(), mcp_protocol_version="1999-01-01")
    assert status == 400, (status, answer)
    status, found, answer = post(message(), mcp_session_id="not-a-session")
    assert status == 200 and "result" in answer and "mcp-session-id" not in found, (status, found)
    still_serving()


# JSON-RPC.


@case("JSON-RPC: what is not JSON is 400 with -32700")
def not_json():
    for body in ("", "{", "not json", '{"jsonrpc":"2.0",}', b"\xff\xfe{}", json.dumps(message())[:-1], json.dumps(message()) + "x"):
        status, _, answer = post(body)
        assert status == 400 and answer["error"]["code"] == -32700 and answer.get("id") is None, (body[:30], status, answer)
    status, _, answer = post("[" * 100_000)
    assert status == 400 and answer["error"]["code"] in (-32700, -32600), (status, answer)
    still_serving()


@case("JSON-RPC: batches, null or broken ids, missing members are 400 with -32600")
def not_a_request():
    bad = [[], [message()], [message(id=1), message(id=2)], message(id=None), message(id=1.5), message(id=[]), message(id={}), message(id=True),
           message(jsonrpc="1.0"), message(method=7), {"jsonrpc": "2.0", "id": 1}, {}, "a string", 7, None, True]
    for body in bad:
        status, _, answer = post(json.dumps(body))
        assert status == 400 and answer["error"]["code"] == -32600, (body, status, answer)
    still_serving()


@case("JSON-RPC: string ids are answered; an unknown method or tool is a protocol error")
def protocol_errors():
    status, _, answer = post(message(id="4e3bdaee-0"))
    assert status == 200 and answer["id"] == "4e3bdaee-0" and "result" in answer, answer
    _, _, answer = post(message(method="no/such/method"))
    assert answer["error"]["code"] == -32601, answer
    for name in ("no_such_tool", "", "get_status ", "../get_status", 7, None):
        _, _, answer = post(message(params={"name": name, "arguments": {}}))
        assert answer["error"]["code"] == -32602, (name, answer)
    for params in ([1], "text", 7):
        status, _, answer = post(message(params=params))
        assert status in (200, 400) and answer["error"]["code"] in (-32600, -32602), (params, status, answer)
    still_serving()


@case("JSON-RPC: a notification gets 202 and no body")
def notification():
    status, _, answer = client().post(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    assert status == 202 and answer == b"", (status, answer)
    still_serving()


# Arguments.


def refused(name, arguments, *codes, names=()):
    """The call is refused with one of the codes and says the words that help; `arguments` may be JSON text."""
    status, _, answer = post(raw(name, arguments if isinstance(arguments, str) else json.dumps(arguments)))
    assert status == 200 and "result" in answer, f"{name} {str(arguments)[:200]}: HTTP {status} {answer}"
    out = client().checked_answer(name, answer["result"]).out
    error = expect_error(out, *codes)
    for word in names:
        assert word in json.dumps(error), f"the refusal does not name {word}: {out}"
    return out


def invalid(name, arguments, *names):
    return refused(name, arguments, "VALIDATION_ERROR", names=names)


def here(**more):
    return {**step_arguments(view(), good_value(view()["step"])), **more}


@case("arguments: unknown keys, missing keys and wrong types are named")
def shapes():
    invalid("get_status", {"colour": "red"}, "colour")
    invalid("submit_step", here(colour="red"), "colour")
    invalid("start_workflow", {**pump.start_arguments("PUMP-2"), "workflow_id": "x"}, "workflow_id")
    for missing in ("workflow_id", "step_id"):
        invalid("submit_step", {k: v for k, v in here().items() if k != missing}, missing)
    for key in ("workflow_id", "step_id", "value", "unit", "note", "idempotency_key", "confirm_token"):
        for wrong in (7, True, None, [], {}):
            invalid("submit_step", here(**{key: wrong}), key)
    invalid("submit_step", here(value=4.2), "value", "string")
    invalid("get_status", {"detail": "everything"}, "detail", "full")
    invalid("report_problem", {"workflow_id": view()["workflow"]["id"], "summary": "x", "severity": "awful"}, "severity", "high")
    for wrong in ("PUMP-2", ["PUMP-2"], {"pump": 7}, {"pump": None}, {"boat": "PUMP-2"}, {"pump": ""}, {"pump": "PUMP 2/3"}):
        invalid("start_workflow", {**pump.start_arguments(), "assets": wrong})
    for wrong in ("x", [], {"work_order": 7}, {"work_order": "WO", "colour": "red"}, {"work_order": "x" * 41}):
        invalid("start_workflow", {**pump.start_arguments("PUMP-2"), "inputs": wrong})
    still_serving()


@case("arguments: an array or a scalar instead of an object")
def no_object():
    for wrong in ("[1]", "[]", '"x"', "7", "true"):
        status, _, answer = post(raw("get_status", wrong))
        if "result" in answer:
            expect_error(client().checked_answer("get_status", answer["result"]).out, "VALIDATION_ERROR")
        else:
            assert status in (200, 400) and answer["error"]["code"] == -32602, (wrong, status, answer)
    still_serving()


@case("arguments: duplicate keys, huge numbers, lone surrogates and deep nesting are refused")
def not_canonical():
    text = json.dumps(here())[:-1]
    invalid("submit_step", text + ', "value": "2.00"}', "value")
    invalid("submit_step", text + ', "val\\u0075e": "2.00"}', "value")
    invalid("submit_step", text + ', "note": "\\ud800"}')
    invalid("start_workflow", json.dumps(pump.start_arguments("PUMP-2"))[:-2] + ', "work_order": "other"}}', "work_order")
    for number in ("1e400", "-1e400", "12345678901234567890123", "9007199254740993", "0.1e-999"):
        invalid("start_workflow", f'{{"procedure_id": "{pump.PROCEDURE}", "assets": {{"pump": "PUMP-2"}}, "inputs": {{"work_order": "WO", "n": {number}}}}}')
    for depth in (33, 1_000, 100_000):
        nested = "[" * depth + "]" * depth
        status, _, answer = post(raw("start_workflow", f'{{"procedure_id": "{pump.PROCEDURE}", "inputs": {{"n": {nested}}}}}'))
        if status == 200 and "result" in answer:
            expect_error(client().checked_answer("start_workflow", answer["result"]).out, "VALIDATION_ERROR", "LIMIT_EXCEEDED")
        else:
            assert answer["error"]["code"] in (-32700, -32600, -32602), (depth, status, answer)
    status, _, answer = post('{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","method":"tools/list"}')
    assert status == 400 and answer["error"]["code"] in (-32700, -32600), (status, answer)
    still_serving()


LIMITS = ("LIMIT_EXCEEDED", "VALIDATION_ERROR")


@case("arguments: one over each limit is refused, the limit itself is not")
def limits():
    identifier = view()["workflow"]["id"]
    for key in ("k" * 129, "", "with space", "caf\u00e9", "line\nbreak", "\u0000"):
        refused("submit_step", here(idempotency_key=key), *LIMITS, names=["idempotency_key"])
    refused("submit_step", here(value="1" * 201), *LIMITS, names=["value"])
    refused("submit_step", here(note="n" * 1001), *LIMITS, names=["note"])
    refused("report_problem", {"workflow_id": identifier, "summary": "s" * 1001}, *LIMITS, names=["summary"])
    refused("find_work", {"query": "q" * 201}, *LIMITS, names=["query"])
    refused("start_workflow", {**pump.start_arguments("PUMP-2"), "inputs": {"work_order": "x" * 17_000}}, *LIMITS, names=["inputs"])
    refused("start_workflow", {**pump.start_arguments(), "assets": {f"role{i}": f"PUMP-{i}" for i in range(17)}}, *LIMITS, names=["assets"])
    started = client().call("start_workflow", **pump.start_arguments("PUMP-3", key="k" * 128))
    expect(started, "started")
    expect(client().call("submit_step", **step_arguments(started, "yes", new_key()), note="\u00e4" * 1000), "recorded")
    assert client().call("find_work", query="q" * 200)["ok"]
    still_serving()


# Domain.

PATHS = ("../../etc/passwd", "/etc/passwd", "..", "a/b", "%2e%2e%2f", "x' OR '1'='1", "\u0000", "", " ", "x" * 5000, "$(id)", "\u202e")


@case("domain: a path, a quote or an endless string as an id finds nothing")
def foreign_ids():
    for text in PATHS:
        refused("get_status", {"workflow_id": text}, "WORKFLOW_NOT_FOUND", *LIMITS)
        refused("submit_step", here(workflow_id=text), "WORKFLOW_NOT_FOUND", *LIMITS)
        refused("submit_step", here(step_id=text), *LIMITS)
        refused("resolve_block", {"workflow_id": view()["workflow"]["id"], "block_id": text, "decision": "x", "comment": "x"},
                "INVALID_TRANSITION", *LIMITS)
    still_serving()


@case("domain: an unknown procedure is told what may be started and what that needs")
def unknown_procedure():
    for text in ("no-such-procedure", *PATHS):
        out = refused("start_workflow", {**pump.start_arguments("PUMP-2"), "procedure_id": text}, "PROCEDURE_NOT_FOUND", *LIMITS)
        if text == "no-such-procedure":
            expect_error(out, "PROCEDURE_NOT_FOUND")
            told = json.dumps(out)
            assert pump.PROCEDURE in told and '"needs"' in told, out
    still_serving()


@case("domain: values that are no plain decimal, a foreign unit, an impossible value")
def values():
    for text in (".5", "4.", "+4", "4,2", "4e0", "\u0664", "0x4", "four", "4 2", "--4", "NaN", "inf", "4.123456"):
        # What follows the digits may be meant as a unit.
        refused("submit_step", here(value=text), "VALIDATION_ERROR", "UNIT_MISMATCH")
    for unit in ("kg", "BAR!", "m\u00b2"):
        refused("submit_step", here(unit=unit), "UNIT_MISMATCH")
    refused("submit_step", here(value="9999"), "IMPLAUSIBLE_VALUE")
    refused("submit_step", here(value="-9999"), "IMPLAUSIBLE_VALUE")
    still_serving()


@case("domain: the wrong moment is told what would be right")
def wrong_moment():
    caller, identifier = client(), view()["workflow"]["id"]
    recorded = caller.call("get_status", workflow_id=identifier, detail="full")["history"]
    first = next(event["step_id"] for event in recorded if event["kind"] == "step_recorded")
    refused("submit_step", here(step_id=first, value="confirmed"), "STEP_ALREADY_RECORDED")
    refused("skip_step", {"workflow_id": identifier, "step_id": view()["step"]["id"]}, "REASON_REQUIRED", "NOT_ALLOWED", "VALIDATION_ERROR")
    refused("finish_workflow", {"workflow_id": identifier, "result": "passed"}, "INVALID_TRANSITION")
    refused("finish_workflow", {"workflow_id": identifier, "result": "splendid"}, "VALIDATION_ERROR", "INVALID_TRANSITION")
    refused("resolve_block", {"workflow_id": identifier, "block_id": "x", "decision": "x", "comment": "x"}, "INVALID_TRANSITION", "VALIDATION_ERROR")
    refused("correct_step", here(reason_code=pump.REASON), "STEP_NOT_OPEN", "VALIDATION_ERROR", "INVALID_TRANSITION")
    done = pump.start(caller, "PUMP-4")
    while done.get("step"):
        done = submit(caller, done)
    done = expect(caller.call("finish_workflow", workflow_id=done["workflow"]["id"], result="passed", idempotency_key=new_key()), "finished")
    refused("submit_step", here(workflow_id=done["workflow"]["id"], value="2.00"), "INVALID_TRANSITION")
    refused("report_problem", {"workflow_id": done["workflow"]["id"], "summary": "late"}, "INVALID_TRANSITION")
    still_serving()


@case("the process that took all of it ends politely")
def last():
    still_serving()
    assert server().stop() == 0
    server().verify()
    text = server().log_text()
    assert "panicked" not in text, text[text.index("panicked") - 200:][:1500]


if __name__ == "__main__":
    run_cases()
