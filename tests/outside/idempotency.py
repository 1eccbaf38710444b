"""Repeated calls: replay, conflict, equivalent encodings, calls without a key, many callers, expected revision."""
import json
import socket
import threading

import pump
from client import Client, expect, expect_error, good_value, new_key, step_arguments, submit, too_high
from harness import Server, case, run_cases, until

REVISION_META = "checkpoint/expectedRevision"
_shared = {}


def client():
    """A client of the server that the cases of this file share, and an asset no other case uses."""
    if "server" not in _shared:
        _shared["server"], _shared["assets"] = Server().start(), iter(range(10_000, 20_000))
    return Client(_shared["server"])


def asset():
    return f"PUMP-{next(_shared['assets'])}"


def revision(caller, view):
    return caller.call("get_status", workflow_id=view["workflow"]["id"])["workflow"]["revision"]


# With a key.


@case("a replay is the stored result byte for byte, also after kill -9")
def replay():
    with Server() as server:
        caller = Client(server)
        sent = []

        def remember(tool, arguments):
            answer = caller.answer(tool, **arguments)
            sent.append((tool, arguments, answer))
            assert answer.out["ok"] and not answer.out["duplicate"], answer.out
            return answer.out

        view = remember("start_workflow", pump.start_arguments(key=new_key()))
        while view.get("step"):
            value = good_value(view["step"])
            view = remember("submit_step", step_arguments(view, value, view["next_idempotency_key"]))
        finish = {"workflow_id": view["workflow"]["id"], "result": "passed", "idempotency_key": new_key()}
        remember("finish_workflow", finish)
        for restart in (False, True):
            if restart:
                server.kill9()
                server.start()
            for tool, arguments, answer in sent:
                again = caller.answer(tool, **arguments)
                assert again.out["duplicate"] and again.stored() == answer.stored(), f"{tool}:\n{answer.text}\n{again.text}"
        server.verify()


@case("the same key with another payload, step, workflow or tool is a conflict that tells no values")
def conflict():
    caller = client()
    view, other, key = pump.at_number(caller, asset()), pump.at_number(caller, asset()), new_key()
    arguments = step_arguments(view, good_value(view["step"]), key)
    after = expect(caller.call("submit_step", **arguments), "recorded")
    at = revision(caller, view)
    variants = {
        "value": {**arguments, "value": "2.11"},
        "step_id": {**arguments, "step_id": after["step"]["id"]},
        "workflow_id": {**arguments, "workflow_id": other["workflow"]["id"]},
        "note": {**arguments, "note": "hot"},
    }
    for field, changed in variants.items():
        out = caller.call("submit_step", **changed)
        error = expect_error(out, "IDEMPOTENCY_CONFLICT")
        told = json.dumps(error["details"])
        assert field in told, f"the details do not name {field}: {told}"
        assert arguments["value"] not in told and "2.11" not in told, f"the details show a value: {told}"
        # The next key is of the workflow that the call names.
        next_key = (other if field == "workflow_id" else after)["next_idempotency_key"]
        assert next_key in json.dumps(out), f"the next key is not told: {out}"
    for tool, changed in {
        "report_problem": {"workflow_id": view["workflow"]["id"], "summary": "x"},
        "start_workflow": pump.start_arguments(asset()),
    }.items():
        expect_error(caller.call(tool, **changed, idempotency_key=key), "IDEMPOTENCY_CONFLICT")
    assert revision(caller, view) == at and revision(caller, other) == other["workflow"]["revision"]


@case("key order, escapes and white space are one payload; other digits are another")
def encodings():
    caller = client()
    view, key = pump.at_number(caller, asset()), new_key()
    arguments = {**step_arguments(view, "4.2", key), "note": "a caf\u00e9 \U0001f600"}
    first = caller.answer("submit_step", **arguments)
    expect(first.out, "recorded", duplicate=False)

    def message(text):
        return f'{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"submit_step","arguments":{text}}}}}'.encode()

    plain = json.dumps(dict(reversed(arguments.items())), ensure_ascii=False)
    escaped = "{" + ",".join(f'"{escape(k)}":"{escape(v)}"' for k, v in arguments.items()) + "}"
    spaced = json.dumps(arguments, indent="\t", separators=(" ,\r\n", " : "))
    for text in (plain, escaped, spaced):
        again = caller.checked_answer("submit_step", caller.reply(caller.post(message(text)), 7)["result"])
        assert again.out["duplicate"] and again.stored() == first.stored(), f"not the same payload: {text}"
    expect_error(caller.call("submit_step", **{**arguments, "value": "4.20"}), "IDEMPOTENCY_CONFLICT")


def escape(text):
    """Every character as \\uXXXX, surrogate pairs included."""
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


@case("a refused call and one that asks for confirmation store nothing under their key")
def nothing_stored():
    caller = client()
    view, key = pump.at_number(caller, asset()), new_key()
    at, step = revision(caller, view), view["step"]
    expect_error(caller.call("submit_step", **step_arguments(view, "4,2", key)), "VALIDATION_ERROR")
    expect_error(caller.call("submit_step", **step_arguments(view, "99999", key)), "IMPLAUSIBLE_VALUE", "VALIDATION_ERROR")
    high = step_arguments(view, too_high(step), key)
    asked = expect(caller.call("submit_step", **high), "needs_confirmation", duplicate=False)
    for token in ("nonsense", asked["confirm"]["token"][::-1]):
        expect(caller.call("submit_step", **high, confirm_token=token), "needs_confirmation")
    higher = {**high, "value": str(round(float(too_high(step)) + 1, 2))}
    expect(caller.call("submit_step", **higher, confirm_token=asked["confirm"]["token"]), "needs_confirmation")
    assert revision(caller, view) == at, "something was recorded without confirmation"
    first = caller.answer("submit_step", **high, confirm_token=asked["confirm"]["token"])
    expect(first.out, "out_of_range", duplicate=False)
    unconfirmed = caller.answer("submit_step", **high)
    assert unconfirmed.out["duplicate"] and unconfirmed.stored() == first.stored(), "a confirmed call and its unconfirmed form are one"


# Without a key.


@case("without a key: every write repeated at once does nothing twice")
def keyless():
    caller = client()

    def twice(tool, **arguments):
        one = caller.answer(tool, **arguments)
        assert one.out["ok"] and not one.out["duplicate"], one.out
        two = caller.answer(tool, **arguments)
        assert two.out["duplicate"] and two.stored() == one.stored(), f"{tool}: {two.out}"
        return one.out

    view = pump.at_number(caller, asset())
    workflow = {"workflow_id": view["workflow"]["id"]}
    value = good_value(view["step"])
    number = step_arguments(view, value)
    after = twice("submit_step", **number)
    noted = caller.call("submit_step", **number, note="said it again")
    assert noted["ok"] and noted["duplicate"], ("free texts do not make a keyless reading another one", noted)
    corrected = {**number, "value": good_value({**view["step"], "min": value}), "reason_code": pump.REASON}
    twice("correct_step", **corrected)
    expect_error(caller.call("submit_step", **number), "STEP_ALREADY_RECORDED")
    problem = twice("report_problem", **workflow, summary="it leaks", severity="high")
    assert len(problem["blocks"]) == 1, problem
    block = problem["blocks"][0]
    going_on = next(d["id"] for d in block["decisions"] if d["id"] != pump.ABORT)
    view = twice("resolve_block", **workflow, block_id=block["id"], decision=going_on, comment="wiped")
    while view.get("step"):
        view = expect(submit(caller, view), "recorded")
    twice("finish_workflow", **workflow, result=view["workflow"]["results"][0]["id"])
    assert after["workflow"]["id"] == workflow["workflow_id"]


@case("a start without a key joins its own open twin, however the asset is spelt")
def joined():
    caller, name = client(), asset()
    one = expect(caller.call("start_workflow", **pump.start_arguments(name)), "started", duplicate=False)
    number = name.removeprefix("PUMP-")
    for spelling in (name, name.lower(), f"pump {number}", f"Pump-0{number}"):
        twin = expect(caller.call("start_workflow", **pump.start_arguments(spelling)), "joined")
        assert twin["workflow"] == one["workflow"], (one, twin)
    expect(caller.call("start_workflow", **pump.start_arguments(name, key=new_key())), "joined")
    held = caller.call("start_workflow", **pump.start_arguments(f"pump {number}", order="another"))
    expect_error(held, "ASSET_LOCKED")
    assert one["workflow"]["id"] in json.dumps(held), "the caller's own workflow is not named"
    assert revision(caller, one) == one["workflow"]["revision"], "joining wrote something"


@case("measuring the same value again after a redo is a new reading")
def redo():
    caller = client()
    before, after = pump.blocked(caller, asset())
    workflow, value = {"workflow_id": before["workflow"]["id"]}, too_high(before["step"])
    assert caller.call("submit_step", **step_arguments(before, value))["duplicate"], "the reading that blocked is stored"
    opened = expect(caller.call("resolve_block", **workflow, block_id=after["blocks"][0]["id"], decision=pump.REDO, comment="again"), "resolved")
    assert opened["step"]["id"] == before["step"]["id"] and opened["step"]["attempt"] == 2, opened
    again = step_arguments(opened, value)
    asked = expect(caller.call("submit_step", **again), "needs_confirmation", duplicate=False)
    fresh = expect(caller.call("submit_step", **again, confirm_token=asked["confirm"]["token"]), "out_of_range", duplicate=False)
    assert fresh["workflow"]["revision"] > opened["workflow"]["revision"], fresh
    readings = [e for e in caller.call("get_status", **workflow, detail="full")["history"] if e["kind"] == "step_recorded" and e["value"] == value]
    assert [reading["attempt"] for reading in readings] == [1, 2], readings


# Many callers.


def together(count, work):
    """Runs work(index) in `count` threads released at one moment; returns what each returned."""
    barrier, results, faults = threading.Barrier(count), [None] * count, []

    def run(index):
        try:
            barrier.wait(30)
            results[index] = work(index)
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not faults, f"{len(faults)} of {count} callers got no answer: {faults[0]!r}"
    return results


def one_commit(keyed):
    caller = client()
    view = pump.at_number(caller, asset())
    arguments = step_arguments(view, good_value(view["step"]), new_key() if keyed else None)
    caller.known_schemas()
    found = together(32, lambda _: Client(_shared["server"]).answer("submit_step", **arguments))
    assert all(answer.out["ok"] for answer in found), next(a.out for a in found if not a.out["ok"])
    assert sum(not answer.out["duplicate"] for answer in found) == 1, "not exactly one was the first"
    assert len({answer.stored() for answer in found}) == 1, "the answers differ"
    history = caller.call("get_status", workflow_id=view["workflow"]["id"], detail="full")["history"]
    assert sum(e.get("step_id") == view["step"]["id"] for e in history) == 1, history


@case("32 callers with one key: one commit, 31 replays")
def crowd():
    one_commit(keyed=True)


@case("32 callers of one call without a key: one commit, 31 replays")
def keyless_crowd():
    one_commit(keyed=False)


@case("16 callers start on one asset: one gets it")
def contended():
    caller, name = client(), asset()
    caller.known_schemas()
    found = together(16, lambda i: Client(_shared["server"]).call("start_workflow", **pump.start_arguments(name, f"WO {i}", new_key())))
    started = [out for out in found if out["ok"]]
    assert len(started) == 1, started
    for out in found:
        if not out["ok"]:
            expect_error(out, "ASSET_LOCKED")


# Revision and lost callers.


@case("a stale expected revision is refused and tells the current one; a replay does not mind")
def expected_revision():
    caller = client()
    view = pump.at_number(caller, asset())
    at, key = view["workflow"]["revision"], new_key()
    arguments = step_arguments(view, good_value(view["step"]), key)
    for stale in (at - 1, at + 1):
        out = caller.answer("submit_step", meta={REVISION_META: stale}, **arguments).out
        assert str(at) in json.dumps(expect_error(out, "VERSION_CONFLICT")["details"]), out
    assert revision(caller, view) == at
    first = caller.answer("submit_step", meta={REVISION_META: at}, **arguments)
    expect(first.out, "recorded", duplicate=False)
    again = caller.answer("submit_step", meta={REVISION_META: at}, **arguments)
    assert again.out["duplicate"] and again.stored() == first.stored(), "the ledger is judged before the revision"
    nonsense = caller.rpc("tools/call", {"name": "submit_step", "_meta": {REVISION_META: "soon"},
                                         "arguments": step_arguments(first.out, good_value(first.out["step"]), new_key())})
    assert "error" in nonsense or nonsense["result"]["isError"], f"an expectation that cannot be read must not be ignored: {nonsense}"
    assert revision(caller, view) == first.out["workflow"]["revision"]


@case("a caller that hangs up after sending loses nothing and doubles nothing")
def hang_up():
    caller = client()
    server = _shared["server"]
    for _ in range(20):
        arguments = pump.start_arguments(asset(), key=new_key())
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "start_workflow", "arguments": arguments}}).encode()
        head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Length: {len(body)}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in caller.headers.items()) + "\r\n"
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
            sock.sendall(head.encode() + body)
        out = caller.call("start_workflow", **arguments)
        expect(out, "started")
        full = caller.call("get_status", workflow_id=out["workflow"]["id"], detail="full")
        assert [e["kind"] for e in full["history"]].count("workflow_started") == 1, full
        first, again = out, caller.call("start_workflow", **arguments)
        assert again["duplicate"] and again["workflow"]["id"] == first["workflow"]["id"], again


@case("the shared server served all of it, and its store verifies")
def last():
    server = _shared.get("server")
    if server is None:
        client()
        server = _shared["server"]
    until(lambda: server.request("GET", "/readyz")[0] == 200, what="readiness")
    server.verify()
    assert server.stop() == 0
    server.verify()


if __name__ == "__main__":
    run_cases()
