"""Two people on one work, over tokens (`--auth dev`): hand-over with the locks, silence, lost assets, a wait, a second
person's signature, and "where was I" from another device.
"""
import json
import os
import re
import threading
from datetime import datetime

from bearer import SUPERVISOR, TECHNICIAN, as_person, dev, issue
from client import expect, expect_error, new_key
from harness import case, cli, fresh_folder, run_cases, until

ASSET = "BENCH-7"
WAIT_SECONDS, STALE_SECONDS = 3, 4

# Everything that a procedure for two has, with times that a test can wait for.
PROCEDURE = f"""
schema: checkpoint/procedure/v1
id: pair-check
version: 1
title: Pair check
order: sequence
assets:
  - role: bench
    say: bench
    id: {{ prefix: BENCH-, digits: {{ max: 3, leading_zeros: drop }} }}
    example: BENCH-7
stale_after: {STALE_SECONDS}s
reasons:
  - {{ code: SHIFT_END, say: the shift ended }}
steps:
  - id: pressure
    kind: number
    say: pressure
    prompt: What is the pressure?
    unit: bar
    decimals: 1
    range: {{ instrument: [0, 10] }}
  - id: rest
    kind: wait
    say: rest
    prompt: Let it rest.
    duration: {WAIT_SECONDS}s
  - id: release
    kind: sign
    say: release
    prompt: Sign for the release.
    role: supervisor
    not_performer: true
results:
  - {{ id: passed, say: passed }}
"""


def served():
    folder = fresh_folder()
    with open(os.path.join(folder, "pair-check.yaml"), "w", encoding="utf-8") as file:
        file.write(PROCEDURE)
    return dev(more=f'[procedures]\ndir = "{folder}"\n')


def person(server, name, scope=TECHNICIAN):
    """Somebody who is called by the name and known by another one."""
    client = as_person(server, issue(server, f"sub-{name.lower()}", scope, "--name", name))
    client.name = name
    return client


def start(client, asset=ASSET):
    out = client.call("start_workflow", procedure_id="pair-check", assets={"bench": asset}, idempotency_key=new_key())
    return expect(out, "started")["workflow"]["id"]


def submit(client, workflow, step, value):
    return client.call("submit_step", workflow_id=workflow, step_id=step, value=value, idempotency_key=new_key())


def transfer(client, workflow, action, **more):
    return client.call("transfer_workflow", workflow_id=workflow, action=action, idempotency_key=new_key(), **more)


def take_over(client, workflow):
    return transfer(client, workflow, "take_over", reason_code="SHIFT_END")


def lock(server, asset=ASSET):
    """The row of an asset, as an operator sees it."""
    code, text = cli("locks", "list", "--all", "--json", "--config", server.config, cwd=server.folder)
    assert code == 0, text
    return next(row for row in json.loads(text)["locks"] if row["asset_id"] == asset)


def release(server, asset=ASSET):
    code, text = cli("locks", "release", asset, "--reason", "tablet lost", "--config", server.config, cwd=server.folder)
    assert code == 0, text


def seconds(since, out):
    """From then to the last event of the answer's workflow, by the server's records."""
    instant = lambda text: datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (instant(out["workflow"]["updated_at"]) - instant(since)).total_seconds()


def names(out, who, nobody):
    """The speech says who, by name, and never how the system calls anybody."""
    assert who in out["speech"] and nobody not in out["speech"] and "sub-" not in out["speech"], out["speech"]


@case("an offer by name: found, taken, with the asset; the old holder is told who has it")
def hand_over():
    with served() as server:
        ann, bob, carl = (person(server, name) for name in ("Ann Miller", "Bob Stone", "Carl Reed"))
        person(server, "Eve Lead", SUPERVISOR).known_schemas()
        start(bob, "BENCH-1"), start(carl, "BENCH-2")
        workflow = start(ann)
        expect(submit(ann, workflow, "pressure", "4.2"), "recorded")
        assert expect_error(transfer(ann, workflow, "offer", to="Zoe"), "VALIDATION_ERROR")["details"]["field"] == "to"
        offered = expect(transfer(ann, workflow, "offer", to="bob"), "transferred")
        assert offered["workflow"]["offer"]["to"] == {"id": "sub-bob stone", "name": "Bob Stone"}, offered["workflow"]
        names(offered, "Bob Stone", "Ann")
        mine = lambda client: [c for c in client.call("find_work", scope="available").get("candidates", []) if c.get("workflow_id") == workflow]
        assert mine(bob)[0]["offered"] is True and mine(bob)[0]["owner"]["name"] == "Ann Miller" and not mine(carl)
        names(expect_error(transfer(carl, workflow, "accept"), "NOT_ALLOWED") and transfer(carl, workflow, "accept"), "Bob Stone", "Ann")
        taken = expect(transfer(bob, workflow, "accept"), "transferred")
        assert taken["workflow"]["owner"]["name"] == "Bob Stone" and "offer" not in taken["workflow"], taken["workflow"]
        row = lock(server)
        assert row["fence"] == 2 and row["holder"]["owner"]["id"] == "user:sub-bob stone" and row["holder"]["workflow_id"] == workflow, row
        for late in (submit(ann, workflow, "rest", "done"), transfer(ann, workflow, "withdraw")):
            expect_error(late, "NOT_ALLOWED")
            names(late, "Bob Stone", "Ann")
            assert late["error"]["details"]["owner"]["name"] == "Bob Stone", late
        server.verify()


@case("locks move without a gap: while work changes hands again and again, nobody else gets its asset")
def without_a_gap():
    with served() as server:
        ann, bob = person(server, "Ann"), person(server, "Bob")
        ann.known_schemas()
        workflow, over, tried = start(ann), threading.Event(), []

        def steal():
            thief = person(server, "Thief")
            while not over.is_set():
                out = thief.call("start_workflow", procedure_id="pair-check", assets={"bench": ASSET}, idempotency_key=new_key())
                tried.append(out["error"]["code"] if not out["ok"] else out["outcome"])

        thieves = [threading.Thread(target=steal) for _ in range(3)]
        for one in thieves:
            one.start()
        try:
            for turn in range(20):
                holder, other = ((ann, bob), (bob, ann))[turn % 2]
                expect(transfer(holder, workflow, "offer"), "transferred")
                expect(transfer(other, workflow, "accept"), "transferred")
        finally:
            over.set()
            for one in thieves:
                one.join(30)
        assert len(tried) > 20 and set(tried) == {"ASSET_LOCKED"}, (len(tried), set(tried))
        assert lock(server)["fence"] == 21, lock(server)
        # The control: an asset that is let go is found at once.
        release(server)
        assert start(person(server, "Thief")) != workflow
        server.verify()


@case("a silent holder may be relieved after the procedure's time, which a wait and a restart do not shorten")
def silence():
    with served() as server:
        ann, bob = person(server, "Ann"), person(server, "Bob")
        workflow = start(ann)
        early = take_over(bob, workflow)
        expect_error(early, "NOT_ALLOWED")
        names(early, "Ann", "Bob")
        assert early["error"]["details"]["free_at"] > early["workflow"]["updated_at"], early
        server.kill9()
        server.start()
        taken = until(lambda: (out := take_over(bob, workflow))["ok"] and out, STALE_SECONDS + 10, "the end of patience")
        assert taken["workflow"]["owner"]["name"] == "Bob" and seconds(taken["workflow"]["started_at"], taken) >= STALE_SECONDS, taken["workflow"]
        late = submit(ann, workflow, "pressure", "4.2")
        expect_error(late, "NOT_ALLOWED")
        names(late, "Bob", "Ann")
        # While a wait runs the clock of patience stands still.
        due = expect(submit(bob, workflow, "pressure", "4.2"), "recorded")["step"]["due_at"]
        taken = until(lambda: (out := take_over(ann, workflow))["ok"] and out, STALE_SECONDS + WAIT_SECONDS + 10, "the end of patience after a wait")
        assert seconds(due, taken) >= STALE_SECONDS, (due, taken["workflow"])
        server.verify()


@case("an asset that an operator took away is taken back by its owner, or the owner is told who has it")
def lost():
    with served() as server:
        ann, bob = person(server, "Ann"), person(server, "Bob")
        workflow = start(ann)
        release(server)
        out = submit(ann, workflow, "pressure", "4.2")
        assert expect_error(out, "LOCK_LOST")["next"]["tool"] == "transfer_workflow", out
        expect(take_over(ann, workflow), "transferred")
        assert lock(server)["fence"] == 2
        expect(submit(ann, workflow, "pressure", "4.2"), "recorded")
        release(server)
        start(bob)
        for refused, code in ((submit(ann, workflow, "rest", "done"), "LOCK_LOST"), (take_over(ann, workflow), "ASSET_LOCKED")):
            error = expect_error(refused, code)
            assert error["details"]["holder"]["name"] == "Bob" and "Bob" in refused["speech"], refused
        done = ann.call("finish_workflow", workflow_id=workflow, result="abandoned", idempotency_key=new_key())
        expect(ann.call("finish_workflow", workflow_id=workflow, result="abandoned", confirm_token=done["confirm"]["token"],
                        idempotency_key=new_key()), "finished")
        assert lock(server)["holder"]["owner"]["id"] == "user:sub-bob"
        server.verify()


@case("a wait tells the time left and outlives kill -9; the release is signed by a second person only")
def wait_and_sign():
    with served() as server:
        ann, eve, sue = person(server, "Ann"), person(server, "Eve", SUPERVISOR), person(server, "Sue", SUPERVISOR)
        sue.known_schemas()
        workflow = start(ann)
        # A supervisor who records something is no second person any more.
        expect(submit(eve, workflow, "pressure", "4.2"), "recorded")
        first = expect_error(submit(ann, workflow, "rest", "done"), "TOO_EARLY")
        server.kill9()
        server.start()
        second = expect_error(submit(ann, workflow, "rest", "done"), "TOO_EARLY")
        assert first["retry"] == "same_call" and 0 < second["after_ms"] < first["after_ms"] <= WAIT_SECONDS * 1000, (first, second)
        assert first["details"]["due_at"] == second["details"]["due_at"], (first, second)
        until(lambda: submit(ann, workflow, "rest", "done")["ok"], WAIT_SECONDS + 10, "the end of the wait")
        assert expect_error(submit(ann, workflow, "release", "done"), "NOT_ALLOWED")["details"]["role"] == "supervisor"
        refused = submit(eve, workflow, "release", "done")
        assert expect_error(refused, "NOT_ALLOWED")["details"]["rule"] == "not_performer" and "second person" in refused["speech"], refused
        expect(submit(sue, workflow, "release", "done"), "recorded")
        # The event says exactly what was signed, up to the event before it.
        code, text = cli("workflow", "history", workflow, "--json", "--config", server.config, cwd=server.folder)
        assert code == 0, text
        events = json.loads(text)["events"]
        signed = [event for event in events if event["data"].get("signed")]
        assert len(signed) == 1 and signed[0]["actor"] == "user:sub-sue", signed
        signature = signed[0]["data"]["signed"]
        assert signature["seq"] == signed[0]["seq"] - 1 and re.fullmatch("[0-9a-f]{64}", signature["digest"]), signature
        expect(ann.call("finish_workflow", workflow_id=workflow, result="passed", idempotency_key=new_key()), "finished")
        server.verify()


@case("where was I: another device, after a restart, in two sentences, from the records")
def where_was_i():
    with served() as server:
        phone, tablet = person(server, "Ann"), person(server, "Ann")
        workflow = start(phone)
        expect(submit(phone, workflow, "pressure", "4.2"), "recorded")
        said = phone.call("get_status")["speech"]
        server.kill9()
        server.start()
        again = tablet.call("get_status")
        assert again["speech"] == said and again["workflow"]["id"] == workflow, (again["speech"], said)
        assert re.fullmatch(r"Bench 7: pressure was recorded as 4\.2 bar at \d\d:\d\d\. Next: Let it rest\.", said), said
        expect(tablet.call("report_problem", workflow_id=workflow, summary="it hums", severity="high", idempotency_key=new_key()), "blocked")
        stopped = phone.call("get_status")["speech"]
        assert stopped.startswith("Pressure was recorded as 4.2 bar") and "Bench 7 is stopped" in stopped, stopped
        assert len(re.findall(r"[.?!](?: |$)", stopped)) == 2, stopped


if __name__ == "__main__":
    run_cases()
