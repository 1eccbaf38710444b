"""The binary with a Step Functions that throttles, fails, loses answers and hears twice, executions that somebody stops, and a
table in bad weather beside it: the reconciler brings everything right, and nobody who works notices.

Needs the emulator of DynamoDB and Step Functions (`cargo xtask aws`); table_faults.py stands in front of it. Parameters:
CALLERS (6), SECONDS of bad weather (12), SEED (random, printed).
"""
import json
import os
import random
import threading
import time
from collections import Counter, defaultdict

import pump
from callers import Caller, audit, workflows_of
from client import Client
from executions import Orchestrated
from harness import EMULATOR, Skip, case, fresh_folder, run_cases, until
from table_faults import Table

CALLERS = int(os.environ.get("CALLERS", "6"))
SECONDS = float(os.environ.get("SECONDS", "12"))
SEED = os.environ.get("SEED") or str(random.SystemRandom().randrange(10**9))
# How far the server's clock goes ahead when the weather is over: what was put off again and again is looked at after two
# minutes, and so is an execution that says nothing for one.
AHEAD = 180_000
# How long all may take then.
HEALED = 60


class Behind:
    """A server whose table and state machine are behind a proxy."""

    def __enter__(self):
        if not EMULATOR:
            raise Skip("needs the emulator of DynamoDB and Step Functions: cargo xtask aws")
        self.table = Table(EMULATOR, SEED)
        folder = fresh_folder()
        self.clock, self.ahead = os.path.join(folder, "clock"), 0
        environment = {"FAILPOINTS": f"clock=return({self.clock})"}
        self.server = Orchestrated(endpoint=self.table.url, folder=folder, environment=environment)
        self.server.start()
        if "is built for tests" not in self.server.log_text():
            raise Skip("this binary has no failpoints: build it with --features failpoints")
        return self

    def passing(self, condition, what):
        """Time passes until it is so: each time far enough for whatever is put off."""
        for left in reversed(range(HEALED // 10)):
            self.time_passes()
            try:
                return until(condition, 10, what)
            except AssertionError:
                if not left:
                    raise
        return None

    def time_passes(self):
        self.ahead += AHEAD
        with open(self.clock, "w", encoding="utf-8") as file:
            file.write(str(self.ahead))

    def __exit__(self, kind, *_):
        self.table.bad_weather, self.table.rule = False, None
        try:
            if kind is None:
                assert self.server.stop() == 0, self.server.log_text()[-1500:]
            else:
                print(f"--- end of {self.server.log}:\n{self.server.log_text()[-3000:]}")
        finally:
            self.server.kill9()
            self.table.close()


class Hand(threading.Thread):
    """Somebody who stops one of eight executions by hand each second until told not to."""

    def __init__(self, server, stop):
        super().__init__(daemon=True)
        self.server, self.stopping, self.random, self.stopped = server, stop, random.Random(SEED), 0

    def run(self):
        while not self.stopping.wait(1):
            running = [one for one in self.server.listed() if one["status"] == "RUNNING"]
            for one in self.random.sample(running, k=-(-len(running) // 8)):
                self.server.states("StopExecution", executionArn=one["executionArn"])
                self.stopped += 1


def wrong_executions(server, states):
    """What is not as it must be when all is quiet: one execution of each open workflow, none of one that has ended."""
    running, ran = defaultdict(list), set()
    for one in server.listed():
        workflow, fence = one["name"].split("-", 1)[1].rsplit("-", 1)
        ran.add(workflow)
        if one["status"] == "RUNNING":
            running[workflow].append(int(fence))
    wrong = [f"an execution of nobody: {workflow}" for workflow in ran if workflow not in states]
    for workflow, state in states.items():
        wanted = 0 if state["state"] == "COMPLETED" else 1
        if len(running[workflow]) != wanted:
            wrong.append(f"{workflow} is {state['state']} and has {running[workflow]} running")
    return wrong


def worked(server, table, seconds):
    """Callers at work in bad weather for so long, and what became of their work."""
    stop, up = threading.Event(), threading.Event()
    up.set()
    callers = [Caller(server, number, SEED, stop, up) for number in range(CALLERS)]
    hand = Hand(server, stop)
    table.bad_weather = True
    for thread in [*callers, hand]:
        thread.start()
    time.sleep(seconds)  # The experiment itself: so much work as fits into it.
    stop.set()
    table.bad_weather = False
    for thread in [*callers, hand]:
        thread.join(150)
        assert not thread.is_alive(), f"{thread.name} does not end"
    again = table.deliver_late()
    records, states, assets, attempts = audit(server, callers)
    done = sum(record.acknowledged for record in records)
    print(f"  {done} acknowledged calls in {len(states)} workflows on {assets} assets; attempts: {dict(attempts)}; "
          f"{hand.stopped} executions stopped by hand; faults: {dict(table.befell)}; delivered again: {again}")
    assert done >= 30, "too little work to mean anything"
    return records, states


@case(f"{CALLERS} callers while Step Functions and the table are in bad weather, seed {SEED}: all comes right, nobody notices")
def weather():
    with Behind() as behind:
        server, table = behind.server, behind.table
        records, states = worked(server, table, SECONDS)
        assert not table.never(), f"it never happened: {table.never()}"
        began = time.monotonic()
        behind.passing(lambda: not wrong_executions(server, states), "one execution of each open workflow, none of the others")
        behind.passing(lambda: not server.undone(), "nothing left to do")
        wrong = wrong_executions(server, states)
        assert not wrong, wrong
        print(f"  all right after {time.monotonic() - began:.1f} s, {len(server.listed())} executions in all")
        # However often it was started, that was acknowledged once.
        client, acknowledged = Client(server, keep_alive=True), Counter()
        for workflow in workflows_of(records):
            history = client.call("get_status", workflow_id=workflow, detail="full")["history"]
            acknowledged[workflow] = sum(event["kind"] == "orchestration_acknowledged" for event in history)
        assert max(acknowledged.values()) <= 1, acknowledged.most_common(3)
        server.verify()
        second_execution(server, states)


def second_execution(server, states):
    """The control: an execution beside the one that there must be is seen, and taken away by `reconcile --once`."""
    workflow = next((w for w, state in states.items() if state["state"] != "COMPLETED"), next(iter(states)))
    own = next(one for one in server.listed() if f"-{workflow}-" in one["name"])
    given = json.loads(server.states("DescribeExecution", executionArn=own["executionArn"])["input"])
    fence = max(server.executions(workflow)) + 1
    name = own["name"].rsplit("-", 1)[0] + f"-{fence}"
    server.states("StartExecution", stateMachineArn=server.machine, name=name, input=json.dumps({**given, "fence": fence}))
    assert wrong_executions(server, states), "a second execution is not seen"
    server.command("reconcile", "--once")
    until(lambda: not wrong_executions(server, states), HEALED, "the second execution is gone")


@case("control: a Step Functions that says it started what it did not is found")
def control_swallowed():
    with Behind() as behind:
        server, table = behind.server, behind.table
        table.swallows = "StartExecution"
        caller = Client(server)
        view = pump.start(caller)
        states = {view["workflow"]["id"]: view["workflow"]}
        until(lambda: table.befell["StartExecution swallowed"], 60, "a start")
        behind.passing(lambda: table.befell["StartExecution swallowed"] >= 2, "it is tried again")
        wrong = wrong_executions(server, states)
        assert wrong, "a workflow without an execution is not seen"
        print(f"  found: {wrong[0]}")
        table.swallows = None
        behind.passing(lambda: not wrong_executions(server, states), "an execution after all")
        server.verify()


if __name__ == "__main__":
    run_cases()
