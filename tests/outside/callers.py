"""Callers that work procedures with unique keys and write down every call, and the audit of what they wrote.

Used by kill_loop.py (kill -9), sigterm.py (graceful end) and bad_table.py (a table that fails): same work, same ledger of
what was acknowledged.
"""
import copy
import json
import random
import threading
import time
from collections import Counter, defaultdict
from http.client import HTTPException

import pump
from client import Client, HttpStatus, good_value, new_key, step_arguments, too_high

# A refusal that the work expects: another workflow holds the contended asset.
EXPECTED = {"start_workflow": {"ASSET_LOCKED"}}
# What each recorded outcome leaves in the history: the kind of event, once per key.
EVENT_OF = {"submit_step": "step_recorded", "correct_step": "step_corrected", "skip_step": "step_skipped",
            "resolve_block": "block_resolved", "finish_workflow": "workflow_completed", "start_workflow": "workflow_started"}


class Ended(Exception):
    """The server is gone for good; the call was `refused` (never sent) or left `unknown`."""


class Record:
    """One key: its payload, each attempt (start, end, outcome) and the answers in order."""

    def __init__(self, tool, arguments):
        self.tool, self.arguments = tool, arguments
        self.attempts, self.answers = [], []

    @property
    def key(self):
        return self.arguments["idempotency_key"]

    @property
    def acknowledged(self):
        """Whether the last answer says that something was recorded under the key."""
        return bool(self.answers) and self.answers[-1].out["ok"] and self.answers[-1].out["outcome"] not in ("needs_confirmation", "joined")

    @property
    def out(self):
        return self.answers[-1].out


class Caller(threading.Thread):
    """Works one workflow after another until told to stop.

    `resolve_unknown`: after a broken call wait for the server and send the same call again; otherwise raise Ended.
    """

    def __init__(self, server, number, seed, stop, up, resolve_unknown=True, contended=4):
        super().__init__(name=f"caller-{number}", daemon=True)
        self.server, self.number, self.stopping, self.up = server, number, stop, up
        self.random = random.Random(f"{seed}/{number}")
        self.resolve_unknown, self.contended = resolve_unknown, contended
        self.client = Client(server, keep_alive=resolve_unknown, checked=False)
        self.records, self.faults, self.orders = [], [], 0

    def run(self):
        try:
            while not self.stopping.is_set():
                self.one_workflow()
        except Ended:
            pass
        except Exception as fault:
            self.faults.append(f"{self.name}: {type(fault).__name__}: {fault}"[:1500])

    # Calls.

    def call(self, tool, arguments):
        """One key from its first attempt to a definite answer."""
        record = Record(tool, {**arguments, "idempotency_key": new_key()})
        self.records.append(record)
        out = self.settle(record)
        for _ in range(3):
            if out["outcome"] == "needs_confirmation":
                record.arguments = {**record.arguments, "confirm_token": out["confirm"]["token"]}
                out = self.settle(record)
        if out["outcome"] == "needs_confirmation":
            self.faults.append(f"{self.name}: a fresh token does not confirm: {out}")
        if record.acknowledged and self.random.random() < 0.1:
            self.settle(record)  # A client that repeats itself.
        if not out["ok"] and out["error"]["code"] not in EXPECTED.get(tool, ()):
            self.faults.append(f"{self.name}: {tool} {record.arguments} was refused: {out['error']}")
        return out

    def settle(self, record):
        end = time.monotonic() + 120
        while time.monotonic() < end:
            began = time.monotonic()
            answer, outcome = self.attempt(record)
            record.attempts.append((began, time.monotonic(), outcome))
            if answer is not None and outcome != "unknown":
                record.answers.append(answer)
                return answer.out
            if not self.resolve_unknown:
                raise Ended
            if outcome != "refused":
                time.sleep(0.002)  # The supervisor may not have noticed yet that the server is dead.
            self.up.wait(30)
        raise AssertionError(f"no definite answer within 120 s: {record.tool} {record.arguments}")

    def attempt(self, record):
        """(answer, outcome): ok, error (definite refusal), unknown, or refused (no connection, so nothing was sent)."""
        try:
            answer = self.client.answer(record.tool, **record.arguments)
        except ConnectionRefusedError:
            return None, "refused"
        except (OSError, HTTPException):
            return None, "unknown"
        except HttpStatus as status:
            if status.status >= 500:
                return None, "unknown"
            raise
        if not answer.out["ok"] and answer.out["error"]["retry"] == "same_call":
            return answer, "unknown"
        return answer, "ok" if answer.out["ok"] else "error"

    # Work.

    def asset(self):
        if self.random.random() < 0.5:
            return f"PUMP-{self.random.randrange(1, self.contended + 1)}"
        return f"PUMP-{1000 * (self.number + 1) + self.random.randrange(3)}"

    def one_workflow(self):
        self.orders += 1
        view = self.call("start_workflow", pump.start_arguments(self.asset(), f"WO {self.number} {self.orders}"))
        if not view["ok"]:
            return
        workflow, quits = {"workflow_id": view["workflow"]["id"]}, self.random.random() < 0.15
        while not self.stopping.is_set() and view["ok"] and view["workflow"]["state"] != "COMPLETED":
            if view["workflow"]["state"] == "BLOCKED":
                block = view["blocks"][0]
                decision = self.random.choice(block["decisions"])["id"]
                view = self.call("resolve_block", {**workflow, "block_id": block["id"], "decision": decision, "comment": "seen"})
            elif (quits and self.random.random() < 0.2) or view["workflow"]["revision"] > 35:
                view = self.call("finish_workflow", {**workflow, "result": "abandoned"})
            elif not view.get("step"):
                result = self.random.choice([r["id"] for r in view["workflow"]["results"]])
                view = self.call("finish_workflow", {**workflow, "result": result})
            else:
                view = self.step(view)

    def step(self, view):
        step, chance = view["step"], self.random.random()
        if step["kind"] == "number" and chance < 0.15 and step.get("attempt", 1) < 3:
            return self.call("submit_step", step_arguments(view, too_high(step)))
        if step.get("required") is False and chance < 0.5:
            return self.call("skip_step", {"workflow_id": view["workflow"]["id"], "step_id": step["id"], "reason_code": pump.REASON})
        after = self.call("submit_step", step_arguments(view, good_value(step)))
        if step["kind"] == "number" and chance > 0.85 and after["ok"] and after["workflow"]["state"] == "RUNNING":
            other = good_value({**step, "min": good_value(step)})
            return self.call("correct_step", {**step_arguments(view, other), "reason_code": pump.REASON})
        return after


# The audit.


def workflows_of(records):
    """workflow id → its acknowledged records, in the caller's order."""
    found = defaultdict(list)
    for record in records:
        if record.acknowledged:
            found[record.out["workflow"]["id"]].append(record)
    return found


def check_ledger(client, records):
    """Every key once: at most one fresh answer, all answers the same bytes, and the same bytes again now."""
    for record in records:
        if not record.acknowledged:
            continue
        committed = [a for a in record.answers if a.out["ok"] and a.out["outcome"] != "needs_confirmation"]
        fresh = [a for a in committed if not a.out["duplicate"]]
        lost = [outcome for _, _, outcome in record.attempts if outcome == "unknown"]
        assert len(fresh) <= 1, f"{record.key} was recorded {len(fresh)} times"
        assert fresh or lost, f"{record.key} was answered as a duplicate at once: {committed[0].out}"
        assert not fresh or committed[0] is fresh[0], f"{record.key} was a duplicate before it was recorded"
        replay = client.answer(record.tool, **record.arguments)
        assert replay.out["ok"] and replay.out["duplicate"], f"an acknowledged call is lost: {record.tool} {record.arguments}: {replay.out}"
        for answer in committed:
            assert replay.stored() == answer.stored(), f"a replay differs:\n{answer.text}\n{replay.text}"


def check_history(client, workflow, records):
    """The history is gapless and says exactly what was acknowledged, each call once; returns the workflow as it is."""
    full = client.call("get_status", workflow_id=workflow, detail="full")
    history, revision = full["history"], full["workflow"]["revision"]
    assert [event["seq"] for event in history] == list(range(1, revision + 1)), (workflow, revision, history)
    assert revision >= max(record.out["workflow"]["revision"] for record in records), f"{workflow} went back: {history}"
    # A sensitive value is withheld from every result, so its step can only be counted.
    hidden = {e.get("step_id") for e in history if e["kind"] in ("step_recorded", "step_corrected") and "value" not in e}
    wanted, found = Counter(), Counter()
    for record in records:
        ends = record.out["workflow"]["state"] == "COMPLETED"
        kind = "workflow_completed" if ends else EVENT_OF[record.tool]
        step = record.arguments["step_id"] if kind.startswith("step_") else None
        wanted[kind, step, None if step in hidden else record.arguments.get("value")] += 1
    for event in history:
        if event["kind"] in EVENT_OF.values():
            step = event["step_id"] if event["kind"].startswith("step_") else None
            found[event["kind"], step, event.get("value") if step else None] += 1
    # A decision that ends the workflow may leave the resolution in the history beside the end.
    resolution = ("block_resolved", None, None)
    if records[-1].tool == "resolve_block" and found[resolution] == wanted[resolution] + 1:
        wanted[resolution] += full["workflow"]["state"] == "COMPLETED"
    wanted, found = +wanted, +found
    assert wanted == found, f"{workflow}: acknowledged but missing {wanted - found}, never acknowledged {found - wanted}: {json.dumps(history)}"
    return full["workflow"]


def check_assets(workflows, states):
    """No two workflows certainly held one asset at one time: from the start's first answer to the first try to end it."""
    held = defaultdict(list)
    for workflow, records in workflows.items():
        began = next(first_answer(record) for record in records if record.tool == "start_workflow")
        ended = [record.attempts[0][0] for record in records if record.out["workflow"]["state"] == "COMPLETED"]
        for asset in states[workflow]["assets"]:
            held[asset["id"]].append((began, min(ended, default=float("inf")), workflow))
    for asset, spans in held.items():
        spans.sort()
        for (_, ended, one), (began, _, other) in zip(spans, spans[1:]):
            assert ended <= began, f"{asset} was held by {one} and {other} at once"
    open_now = Counter(asset["id"] for state in states.values() if state["state"] != "COMPLETED" for asset in state["assets"])
    assert not open_now or max(open_now.values()) == 1, f"held twice now: {open_now}"
    return len(held)


def first_answer(record):
    """When the record was first answered with something recorded."""
    return next(end for _, end, outcome in record.attempts if outcome == "ok")


def audit(server, callers):
    """What the callers were told, against what the server says now."""
    faults = [fault for caller in callers for fault in caller.faults]
    assert not faults, f"{len(faults)} calls were refused or failed, the first: {faults[0]}"
    records = [record for caller in callers for record in caller.records]
    client = Client(server, keep_alive=True)
    check_ledger(client, records)
    workflows = workflows_of(records)
    states = {workflow: check_history(client, workflow, own) for workflow, own in workflows.items()}
    assets = check_assets(workflows, states)
    still_open = sum(state["state"] != "COMPLETED" for state in states.values())
    listed = client.call("find_work", scope="mine").get("candidates_total", 0)
    assert listed == still_open, f"{listed} workflows are open, the callers know of {still_open}"
    samples = Counter()
    for record in records:
        for answer in record.answers:
            samples[record.tool, answer.out["outcome"]] += 1
            if samples[record.tool, answer.out["outcome"]] <= 10:
                client.check(answer)
    attempts = Counter(outcome for record in records for _, _, outcome in record.attempts)
    return records, states, assets, attempts


def controls(client, records):
    """The audit must see a call that was acknowledged and lost, and one that happened and was never acknowledged."""
    workflow, own = next((w, r) for w, r in workflows_of(records).items() if len(r) > 2)
    step = next(record for record in own if record.tool != "start_workflow")
    ghost = copy.copy(step)
    ghost.arguments = {**step.arguments, "idempotency_key": "never-sent"}
    for what, check in {
        "a lost call": lambda: check_ledger(client, [ghost]),
        "an unacknowledged call": lambda: check_history(client, workflow, [record for record in own if record is not step]),
        "a missing event": lambda: check_history(client, workflow, [*own, ghost]),
    }.items():
        try:
            check()
        except AssertionError:
            continue
        raise AssertionError(f"the audit does not see {what}")
