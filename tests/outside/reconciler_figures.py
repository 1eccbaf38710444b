"""Figures, not a test of the suite: many open workflows with executions of Step Functions. How long until each has one after a
start that finds all of them waiting and after kill -9, and what a minute costs when nothing happens.

Needs the emulator: `cargo xtask aws -- tests/outside/run.sh reconciler_figures`. WORKFLOWS (1000) and SECONDS_OF_REST (60).
"""
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pump
from bearer import as_person, issue
from client import expect, new_key
from executions import Orchestrated
from harness import case, run_cases, until

WORKFLOWS = int(os.environ.get("WORKFLOWS", "1000"))
SECONDS = int(os.environ.get("SECONDS_OF_REST", "60"))
PATIENCE = 1_800
# Nobody may have more than 100 open.
OPEN_EACH = 50


def sums(server, metric):
    """The series of a metric, by its labels."""
    status, _, text = server.request("GET", "/metrics")
    assert status == 200, status
    text = text.decode() if isinstance(text, bytes) else text
    return {labels: float(value) for labels, value in re.findall(rf"^{metric}\{{(.*)\}} (\S+)$", text, re.MULTILINE)}


def calls(server):
    return sum(sums(server, "checkpoint_reconciler_calls_total").values())


def requests(server):
    return sum(sums(server, "checkpoint_dynamodb_requests_total").values())


def running(server):
    count, after = 0, {}
    while True:
        page = server.states("ListExecutions", stateMachineArn=server.machine, statusFilter="RUNNING", maxResults=1000, **after)
        count += len(page["executions"])
        if not page.get("nextToken"):
            return count
        after = {"nextToken": page["nextToken"]}


def settled(server):
    """A dry run finds nothing to do."""
    return not [looked for looked in server.command("reconcile", "--once", "--dry-run")["workflows"] if looked["steps"]]


@case(f"{WORKFLOWS} open workflows: converging, resting, converging again after kill -9")
def figures():
    server = Orchestrated(config='[auth]\nmode = "dev"\n')
    server.environment = {"WF_BACKEND_AWS_RECONCILER": "false"}
    with server:
        people = [issue(server, f"p{number}") for number in range(-(-WORKFLOWS // OPEN_EACH))]

        def start(number):
            arguments = pump.start_arguments(f"PUMP-{number + 1}", key=new_key())
            caller = as_person(server, people[number // OPEN_EACH], checked=False)
            expect(caller.call("start_workflow", **arguments), "started")

        with ThreadPoolExecutor(8) as callers:
            list(callers.map(start, range(WORKFLOWS)))
        assert running(server) == 0, "nobody reconciles yet"
        server.kill9()
        server.environment = {}
        began = time.monotonic()
        server.start()
        until(lambda: running(server) == WORKFLOWS or time.sleep(1), PATIENCE, "an execution for each")
        every = time.monotonic() - began
        until(lambda: settled(server) or time.sleep(1), PATIENCE, "nothing to do")
        print(f"{WORKFLOWS} waiting: {every:.0f} s until each has an execution, {time.monotonic() - began:.0f} s until nothing is to do, "
              f"{calls(server):.0f} calls to Step Functions, {requests(server):.0f} requests to DynamoDB")
        before = calls(server), requests(server)
        time.sleep(SECONDS)
        minute = [60 * (now - then) / SECONDS for now, then in zip((calls(server), requests(server)), before)]
        print(f"at rest: {minute[0]:.1f} calls to Step Functions and {minute[1]:.1f} requests to DynamoDB a minute")
        server.kill9()
        began = time.monotonic()
        server.start()
        shards = lambda: sum(sums(server, "checkpoint_reconciler_shards_held").values())
        until(lambda: shards() == 4 or time.sleep(0.2), PATIENCE, "all shards")
        until(lambda: settled(server) or time.sleep(0.2), PATIENCE, "nothing to do")
        print(f"after kill -9 at rest: {time.monotonic() - began:.0f} s until all shards are held and nothing is to do, "
              f"{calls(server):.0f} calls to Step Functions")
        assert running(server) == WORKFLOWS


if __name__ == "__main__":
    run_cases()
