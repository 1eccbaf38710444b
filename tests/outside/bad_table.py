"""The binary on a table that throttles, conflicts, breaks connections and loses answers: each call once, or not at all.

Needs the emulator of DynamoDB (`cargo xtask aws`); table_faults.py stands in front of it. Parameters: CALLERS (8), SECONDS
of bad weather (12), SEED (random, printed).

The controls at its end are tables that keep less than DynamoDB does: what the callers find behind them must be told.
"""
import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pump
from callers import Caller, audit, controls
from client import Client, expect, expect_error, good_value, new_key, step_arguments
from harness import EMULATOR, Server, Skip, case, own_state, run_cases, until
from table_faults import WRITE, Table, ledger_apart, without_conditions

CALLERS = int(os.environ.get("CALLERS", "8"))
SECONDS = float(os.environ.get("SECONDS", "12"))
# Of each table with a flaw.
CONTROL_SECONDS = 2
SEED = os.environ.get("SEED") or str(random.SystemRandom().randrange(10**9))


class Behind:
    """A server whose table is behind a proxy of its own."""

    def __init__(self, flaw=None):
        self.flaw = flaw

    def __enter__(self):
        if not EMULATOR:
            raise Skip("needs the emulator of DynamoDB: cargo xtask aws")
        self.table = Table(EMULATOR, SEED, self.flaw)
        self.server = Server(state=own_state(None).replace(EMULATOR, self.table.url))
        self.server.lacks_table = True
        self.server.start()
        return self.server, self.table

    def __exit__(self, kind, *_):
        self.table.bad_weather, self.table.rule = False, None
        try:
            if self.flaw:
                pass  # Whatever became of it is found or not found by then.
            elif kind is None:
                assert self.server.stop() == 0, self.server.log_text()[-1500:]
            else:
                print(f"--- end of {self.server.log}:\n{self.server.log_text()[-3000:]}")
        finally:
            self.server.kill9()
            self.table.close()


def events_of(client, view, kind):
    history = client.call("get_status", workflow_id=view["workflow"]["id"], detail="full")["history"]
    return [event for event in history if event["kind"] == kind]


def storm_over(server, table, seconds, bad_weather=True):
    """Callers at work for so long, and what became of it: (callers, how many requests arrived once more)."""
    stop, up = threading.Event(), threading.Event()
    up.set()
    callers = [Caller(server, number, SEED, stop, up) for number in range(CALLERS)]
    table.bad_weather = bad_weather
    for caller in callers:
        caller.start()
    time.sleep(seconds)  # The experiment itself: so much work as fits into it.
    table.bad_weather = False
    stop.set()
    for caller in callers:
        caller.join(150)
        assert not caller.is_alive(), f"{caller.name} does not end"
    return callers, table.deliver_late()


@case(f"{CALLERS} callers in bad weather, seed {SEED}: nothing lost, nothing doubled")
def weather():
    with Behind() as (server, table):
        callers, again = storm_over(server, table, SECONDS)
        records, states, assets, attempts = audit(server, callers)
        done = sum(record.acknowledged for record in records)
        print(f"  {done} acknowledged calls in {len(states)} workflows on {assets} assets; attempts: {dict(attempts)}; "
              f"faults: {dict(table.befell)}; delivered again: {again}")
        assert done >= 30, "too little work to mean anything"
        assert not table.never(), f"it never happened: {table.never()}"
        controls(Client(server), records)
        server.verify()


@case("answers lost until the caller gives up, then it retries: one event, a duplicate")
def lost_for_long():
    with Behind() as (server, table):
        client = Client(server)
        view = pump.at_number(client, "PUMP-1")
        arguments = step_arguments(view, good_value(view["step"]), new_key())
        written = []

        def rule(operation):
            if operation == WRITE:
                written.append(operation)
                return "lost"
            # Once it is written nobody can look it up either.
            return "broken" if written else None

        table.rule = rule
        out = client.call("submit_step", **arguments)
        refusal = expect_error(out, "BACKEND_UNAVAILABLE")
        assert refusal["retry"] == "same_call", refusal
        table.rule = None
        out = client.call("submit_step", **arguments)
        expect(out, "recorded", duplicate=True)
        recorded = [e for e in events_of(client, view, "step_recorded") if e["step_id"] == view["step"]["id"]]
        assert len(recorded) == 1 and len(written) >= 3, (recorded, len(written))
        server.verify()


@case("32 callers on one asset while transactions conflict: one gets it")
def storm():
    with Behind() as (server, table):
        Client(server).known_schemas()
        turns = iter(range(10**9))
        kinds = ["conflict", None, "throttled", None, "conflict", "lost", None]
        table.rule = lambda operation: kinds[next(turns) % len(kinds)] if operation == WRITE else None
        calls = [pump.start_arguments("PUMP-9", f"WO {n}", new_key()) for n in range(32)]

        def call(arguments):
            found = []

            def answer():
                found.append(Client(server).call("start_workflow", **arguments))
                return found[-1]["ok"] or found[-1]["error"]["retry"] != "same_call"

            until(answer, 60, "a definite answer")
            return found[-1]

        with ThreadPoolExecutor(32) as pool:
            told = list(pool.map(call, calls))
        table.rule = None
        won = [out for out in told if out["ok"]]
        assert len(won) == 1, won
        for out in told:
            if not out["ok"]:
                expect_error(out, "ASSET_LOCKED")
        assert table.befell["conflict"] and table.befell["lost"], table.befell
        again = [Client(server).call("start_workflow", **arguments) for arguments in calls]
        winners = [out for out in again if out["ok"]]
        assert len(winners) == 1 and winners[0]["duplicate"], winners
        assert winners[0]["workflow"]["id"] == won[0]["workflow"]["id"]
        server.verify()


def found_behind(flaw, bad_weather):
    """What is found behind a table with a flaw: by callers, by the audit of what they were told, or by `workflow verify`."""
    with Behind(flaw) as (server, table):
        try:
            callers, _ = storm_over(server, table, CONTROL_SECONDS, bad_weather)
            audit(server, callers)
            server.verify()
        except AssertionError as found:
            return " ".join(str(found).split())[:300]
    return None


@case("control: a table that writes whatever it is sent is found")
def control_without_conditions():
    found = found_behind(without_conditions, True)
    assert found, "nothing was found behind a table without conditions"
    print(f"  found: {found}")


@case("control: a table whose ledger rows are written outside the commit, and get lost, is found")
def control_ledger_apart():
    dice = random.Random(SEED)
    found = found_behind(ledger_apart(lambda: dice.random() < 0.1), False)
    assert found, "nothing was found behind a table that loses ledger rows"
    print(f"  found: {found}")
    # And one that loses none, in good weather, is not: what is found is the row that is missing.
    found = found_behind(ledger_apart(lambda: False), False)
    assert not found, found


if __name__ == "__main__":
    run_cases()
