"""Who is let in, over raw HTTP: refusals in all three challenge modes, the documents that clients find, the handshake of
Alexa+ byte for byte, and a whole inspection with issued tokens (`--auth dev`).

The same with a real authorization server is in oauth.py.
"""
import base64
import json
import os
import re
import stat
import subprocess

import pump
from bearer import SUPERVISOR, TECHNICIAN, as_person, dev, find, issue, post
from client import HttpStatus, drive, expect, expect_error, new_key, submit, too_high
from harness import NotStarted, Server, binary, case, clean_environment, fresh_folder, run_cases, talk, until

ROOT = "/.well-known/oauth-protected-resource"
SERVICE_SCOPE = "mcp:service"


def service(server):
    return issue(server, "alexa", SERVICE_SCOPE)


def bytes_of(server, token, path="/mcp", message=None):
    """The answer's bytes without what differs between any two. All of the request is sent at once: whether the server
    has the whole of it decides whether the connection may go on, which is no matter of the token."""
    body = json.dumps(message or find()).encode()
    authorization = "" if token is None else f"authorization: {token if ' ' in token else 'Bearer ' + token}\r\n"
    head = (f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: */*\r\n"
            f"{authorization}content-length: {len(body)}\r\n\r\n")
    received = talk(server.port, head.encode() + body)[2]
    return re.sub(rb"(?m)^(date|x-request-id): .*\r\n", b"", received)


def claims(token):
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def encoded(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def bad_tokens(server, foreign):
    """Every kind of credential that must not count, by name."""
    good = issue(server)
    head, payload, signature = good.split(".")
    promoted = encoded({**claims(good), "scope": SUPERVISOR})
    flipped = ("A" if signature[0] != "A" else "B") + signature[1:]
    expired = issue(server, "ann", TECHNICIAN, "--ttl", "1s")
    until(lambda: post(server, find(), expired)[0] == 401, 15, "the end of a token's life")
    return good, {
        "missing": None, "empty": "", "no token": "abc", "three dots": "a.b.c", "no signature": f"{head}.{payload}.",
        "two parts": f"{head}.{payload}", "alg none": f"{encoded({'alg': 'none', 'typ': 'at+jwt'})}.{payload}.",
        "forged": f"{head}.{payload}.{flipped}", "promoted": f"{head}.{promoted}.{signature}",
        "foreign": issue(foreign), "expired": expired,
    }


@case("headerless: a missing, malformed, expired, foreign and forged token get the same bytes, and so does a service that acts")
def headerless():
    with dev(more='clock_skew = "1ms"') as server, dev() as foreign:
        good, bad = bad_tokens(server, foreign)
        assert post(server, find(), good)[0] == 200
        answers = {name: bytes_of(server, token) for name, token in bad.items()}
        answers["basic"] = bytes_of(server, "Basic YTpi")
        answers["in the query"] = bytes_of(server, None, f"/mcp?access_token={good}")
        answers["a service that acts"] = bytes_of(server, service(server))
        first = answers["missing"]
        assert first.startswith(b"HTTP/1.1 401 ") and first.endswith(b'\r\n\r\n{"error":"unauthorized"}'), first
        assert b"www-authenticate" not in first, first
        for name, answer in answers.items():
            assert answer == first, (name, answer, first)
        # The control: an answer that differs is seen.
        assert bytes_of(server, good) != first
        for token in bad.values():
            assert not token or token not in server.log_text(), "a token is in the log"
        assert good not in server.log_text() and good.split(".")[2] not in server.log_text()


@case("rfc9728: the 401 names the document of its path, the same for every reason; by_path serves both")
def challenges():
    with dev("rfc9728", 'clock_skew = "1ms"') as server, dev() as foreign:
        _, bad = bad_tokens(server, foreign)
        answers = {name: bytes_of(server, token) for name, token in bad.items()}
        origin = f"http://127.0.0.1:{server.port}"
        expected = f'www-authenticate: Bearer resource_metadata="{origin}{ROOT}/mcp", scope="{TECHNICIAN}"\r\n'
        for name, answer in answers.items():
            assert answer == answers["missing"] and answer.startswith(b"HTTP/1.1 401 ") and expected.encode() in answer, (name, answer)
        assert post(server, find(), path="/mcp-std")[0] == 404
    with dev("by_path") as server:
        origin = f"http://127.0.0.1:{server.port}"
        plain, standard = post(server, find()), post(server, find(), path="/mcp-std")
        assert plain[0] == standard[0] == 401 and plain[2] == standard[2] and "www-authenticate" not in plain[1]
        assert standard[1]["www-authenticate"] == f'Bearer resource_metadata="{origin}{ROOT}/mcp-std", scope="{TECHNICIAN}"', standard
        token = issue(server)
        assert post(server, find(), token)[0] == post(server, find(), token, path="/mcp-std")[0] == 200


@case("the 401 comes before a byte of the body: only the head is sent, and nothing is asked for")
def before_the_body():
    for challenge in ("headerless", "rfc9728"):
        with dev(challenge) as server:
            head = (f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\ncontent-type: application/json\r\n"
                    "accept: */*\r\n{}content-length: 100000\r\n\r\n")
            for more in ("", "expect: 100-continue\r\n", "authorization: Bearer a.b.c\r\n"):
                status, _, received = talk(server.port, head.format(more).encode(), wait=5)
                assert status == 401 and received.count(b"HTTP/1.1") == 1, (more, received)
            # The control: with a token the server waits for the body.
            status, _, received = talk(server.port, head.format(f"authorization: Bearer {issue(server)}\r\n").encode(), wait=1.5)
            assert status is None and received == b"", received


@case("the documents: shape, both paths, public, cacheable, readable by any page; none without authentication")
def documents():
    with dev("by_path", 'documentation_url = "https://docs.example.com/x"') as server:
        origin = f"http://127.0.0.1:{server.port}"
        for path, resource in (("", "/mcp"), ("/mcp", "/mcp"), ("/mcp-std", "/mcp-std")):
            status, headers, body = server.request("GET", ROOT + path, headers={"origin": "https://anywhere.example"})
            assert status == 200 and headers["content-type"] == "application/json", (status, headers)
            assert json.loads(body) == {
                "resource": origin + resource, "authorization_servers": [origin], "scopes_supported": TECHNICIAN.split(),
                "bearer_methods_supported": ["header"], "resource_name": "Checkpoint", "resource_documentation": "https://docs.example.com/x",
            }, body
            assert headers["access-control-allow-origin"] == "*" and re.fullmatch(r"public, max-age=\d+", headers["cache-control"]), headers
            assert server.request("HEAD", ROOT + path)[0] == 200
            asked = server.request("OPTIONS", ROOT + path, headers={"origin": "https://anywhere.example", "access-control-request-method": "GET"})
            assert asked[0] == 204 and asked[1]["access-control-allow-origin"] == "*", asked
        # Nothing but these is readable by every page.
        assert server.request("OPTIONS", "/mcp", headers={"origin": "https://anywhere.example"})[0] == 403
    with dev() as server:
        assert server.request("GET", f"{ROOT}/mcp-std")[0] == 404
        public = server
    with Server() as server:
        assert server.request("GET", ROOT)[0] == server.request("GET", f"{ROOT}/mcp")[0] == 404
    named = Server('public_url = "https://wf.example.com"', config='[auth]\nmode = "dev"\n')
    with named as server:
        status, _, body = server.request("GET", ROOT, headers={"host": "wf.example.com"})
        assert status == 200 and json.loads(body)["resource"] == "https://wf.example.com/mcp", body
    assert public is not named


def handshake(number):
    """The published first call of an Alexa+ add-on, in shape."""
    return {"jsonrpc": "2.0", "id": number, "method": "initialize", "params": {
        "protocolVersion": "2025-03-26", "capabilities": {"roots": {"listChanged": True}},
        "clientInfo": {"name": "alexa-plus", "version": "1.0.0"}}}


def alexa(server, token, act):
    """Handshake, notification, list, call: no session id, no version header, string ids."""
    status, headers, body = post(server, handshake("init-1"), token)
    reply = json.loads(body)
    assert status == 200 and reply["id"] == "init-1" and reply["result"]["protocolVersion"] == "2025-03-26", (status, body)
    assert "mcp-session-id" not in headers and "tools" in reply["result"]["capabilities"], headers
    status, _, body = post(server, {"jsonrpc": "2.0", "method": "notifications/initialized"}, token)
    assert (status, body) == (202, b""), (status, body)
    status, _, body = post(server, {"jsonrpc": "2.0", "id": "list-1", "method": "tools/list"}, token)
    reply = json.loads(body)
    assert status == 200 and reply["id"] == "list-1", body
    tools = [tool["name"] for tool in reply["result"]["tools"]]
    status, headers, body = post(server, find("call-1"), act)
    return tools, status, headers, body


@case("the handshake of Alexa+ without tokens, and with a service token that lists and a user token that acts")
def alexa_plus():
    with Server() as server:
        tools, status, _, body = alexa(server, None, None)
        assert status == 200 and "resolve_block" in tools and json.loads(body)["id"] == "call-1", body
    with dev() as server:
        machine, person = service(server), issue(server)
        tools, status, headers, body = alexa(server, machine, machine)
        assert "resolve_block" not in tools and "submit_step" in tools, tools
        # This answer is what makes Alexa+ link the account.
        assert status == 401 and body == b'{"error":"unauthorized"}' and "www-authenticate" not in headers, (status, headers, body)
        tools, status, _, body = alexa(server, machine, person)
        assert status == 200 and json.loads(body)["result"]["structuredContent"]["ok"], body
        assert alexa(server, person, person)[1] == 200
        # An id that somebody made up is no authority, with a token and without.
        assert post(server, find(), person, **{"mcp-session-id": "made-up"})[0] == 200
        assert post(server, find(), **{"mcp-session-id": "made-up"})[0] == 401
    with dev(more='service_lists = "all"') as server:
        assert "resolve_block" in alexa(server, service(server), service(server))[0]
    with dev("rfc9728") as server:
        _, status, headers, body = alexa(server, service(server), service(server))
        assert status == 403 and 'error="insufficient_scope"' in headers["www-authenticate"], (status, headers)
        assert json.loads(body)["error"] == "insufficient_scope", body


@case("--auth dev: a whole inspection by a technician, a block decided by a supervisor, names spoken, exit codes kept")
def whole_inspection():
    with dev("by_path") as server:
        ann = as_person(server, issue(server, "ann", TECHNICIAN, "--name", "Ann Miller"))
        bob = as_person(server, issue(server, "bob", TECHNICIAN, "--name", "Bob Stone"))
        eve = as_person(server, issue(server, "eve", SUPERVISOR, "--name", "Eve Lead"))
        eve.known_schemas()  # The answers of all are checked by the longest list.
        view = expect(ann.call("start_workflow", **pump.start_arguments(key=new_key())), "started")
        assert view["workflow"]["owner"] == {"id": "ann", "name": "Ann Miller"}, view["workflow"]
        view = drive(ann, view, lambda v: v["step"]["kind"] == "number")
        workflow = view["workflow"]["id"]
        # Bob sees it and may not drive it; the one who may is named.
        refused = bob.call("submit_step", workflow_id=workflow, step_id=view["step"]["id"], value="1", idempotency_key=new_key())
        expect_error(refused, "NOT_ALLOWED")
        assert "Ann Miller" in refused["speech"] and "ann" not in refused["speech"].replace("Ann", ""), refused["speech"]
        view = expect(submit(ann, view, too_high(view["step"])), "out_of_range")
        decision = dict(workflow_id=workflow, block_id=view["blocks"][0]["id"], decision=pump.REDO, comment="gauge was not zeroed")
        said = ann.call("resolve_block", **decision, idempotency_key=new_key())
        expect_error(said, "NOT_ALLOWED")
        assert said["error"]["next"], said
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "resolve_block", "arguments": decision}}
        status, headers, _ = post(server, message, ann.headers["authorization"].split()[1], path="/mcp-std")
        assert status == 403 and 'scope="workflow:read workflow:write workflow:supervise"' in headers["www-authenticate"], (status, headers)
        view = expect(eve.call("resolve_block", **decision, idempotency_key=new_key()), "resolved")
        view = drive(ann, expect(ann.call("get_status", workflow_id=workflow), "view"))
        done = expect(ann.call("finish_workflow", workflow_id=workflow, result="passed", idempotency_key=new_key()), "finished")
        assert done["workflow"]["state"] == "COMPLETED"
        full = ann.call("get_status", workflow_id=workflow, detail="full")
        assert {event["by"]["name"] for event in full["history"]} == {"Ann Miller", "Eve Lead", "orchestrator"}, full["history"]
        server.verify()


@case("a list shows what its token may call; a reader may not write, by result or by challenge")
def scopes():
    with dev("by_path") as server:
        listed = lambda token: [t["name"] for t in json.loads(post(server, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, token)[2])["result"]["tools"]]
        reader, technician, supervisor = (issue(server, "ann", scope) for scope in ("workflow:read", TECHNICIAN, SUPERVISOR))
        assert listed(reader) == ["find_work", "get_status", "check_value"], listed(reader)
        assert set(listed(supervisor)) - set(listed(technician)) == {"resolve_block"}
        assert listed(service(server)) == listed(technician) and listed(issue(server, "ann", "openid")) == []
        start = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "start_workflow", "arguments": pump.start_arguments(key=new_key())}}
        out = json.loads(post(server, start, reader)[2])["result"]["structuredContent"]
        expect_error(out, "NOT_ALLOWED")
        status, headers, _ = post(server, start, reader, path="/mcp-std")
        assert status == 403 and f'scope="{TECHNICIAN}"' in headers["www-authenticate"], (status, headers)
        # Neither did anything.
        assert as_person(server, supervisor).call("get_status")["outcome"] == "none"


@case("a token that lost its scope gets no stored answer; tenants do not meet")
def replays_and_tenants():
    with dev() as server:
        key, arguments = new_key(), None
        writer, reader = issue(server, "ann"), issue(server, "ann", "workflow:read")
        arguments = pump.start_arguments(key=key)
        view = expect(as_person(server, writer).call("start_workflow", **arguments), "started")
        again = as_person(server, writer).call("start_workflow", **arguments)
        assert again["duplicate"] is True
        refused = as_person(server, reader).call("start_workflow", **arguments)
        expect_error(refused, "NOT_ALLOWED")
        assert refused["duplicate"] is False and view["workflow"]["id"] not in json.dumps(refused), refused
        other = as_person(server, issue(server, "ann", SUPERVISOR, "--tenant", "globex"))
        assert other.call("get_status")["outcome"] == "none"
        expect_error(other.call("get_status", workflow_id=view["workflow"]["id"]), "WORKFLOW_NOT_FOUND")
        # The same asset of another tenant is another asset, and the same key another key.
        expect(other.call("start_workflow", **arguments), "started", duplicate=False)


@case("the key is the owner's alone, is kept over a restart, and dev serves this machine only")
def key_and_loopback():
    server = dev()
    with server:
        token = issue(server)
        assert post(server, find(), token)[0] == 200
    keys = [name for name in os.listdir(server.folder) if "key" in name]
    assert len(keys) == 1, keys
    path = os.path.join(server.folder, keys[0])
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with server:
        assert post(server, find(), token)[0] == 200, "a restart forgot the key"
    # Issued before the first start, too.
    early = dev()
    token = issue(early)
    with early:
        assert post(early, find(), token)[0] == 200
    try:
        exposed = dev(arguments=["--listen", "0.0.0.0:0"])
        exposed.start(wait=10)
    except NotStarted as refused:
        assert refused.code == 2 and "this machine only" in refused.log, refused.log
    else:
        exposed.kill9()
        raise AssertionError("dev tokens are served to other machines")


@case("wf-cli call sends a token; without one it says what to do")
def call():
    with dev() as server:
        url = f"http://127.0.0.1:{server.port}/mcp"
        command = [binary(), "call", "find_work", "--url", url]
        run = lambda **more: subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=fresh_folder(), env={**clean_environment(), **more}, check=False)
        refused = run()
        assert refused.returncode == 1 and "401" in refused.stderr and "wf-cli token issue" in refused.stderr, refused.stderr
        token = issue(server)
        good = run(WF_TOKEN=token)
        assert good.returncode == 0 and token not in good.stdout + good.stderr, good.stderr


@case("a token that is too long or sent twice is the client's mistake: 400")
def mistakes():
    with dev() as server:
        token = issue(server)
        body = json.dumps(find()).encode()
        head = f"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: */*\r\ncontent-length: {len(body)}\r\n"
        twice = head + f"authorization: Bearer {token}\r\nauthorization: Bearer {token}\r\n\r\n"
        assert talk(server.port, twice.encode() + body)[0] == 400
        assert talk(server.port, (head + f"authorization: Bearer {'a' * 9000}\r\n\r\n").encode() + body)[0] == 400
        try:
            as_person(server, "a.b.c", checked=False).call("find_work")
        except HttpStatus as refused:
            assert refused.status == 401


if __name__ == "__main__":
    run_cases()
