"""Whole procedures over `wf-cli serve` with a state machine of Step Functions, over kill -9: each open workflow has one execution,
which learns of deadlines and ends with the workflow.

Needs the emulator of DynamoDB and Step Functions (`cargo xtask aws -- tests/outside/run.sh orchestrated`).
"""
import os

import pump
from bearer import SUPERVISOR, as_person, issue
from client import Client, drive, expect, new_key, submit, too_high
from executions import Orchestrated
from harness import case, fresh_folder, run_cases, until

SHIPPED = os.path.join(os.path.dirname(__file__), "..", "..", "crates", "wf-procedure", "procedures")
CALIBRATION = "analytical-balance-calibration"


def history(client, workflow):
    return client.call("get_status", workflow_id=workflow, detail="full")["history"]


def kinds(client, workflow, kind):
    return [event for event in history(client, workflow) if event["kind"] == kind]


@case("a pump inspection: one execution from start to end, over kill -9 before it and beside it")
def inspection():
    with Orchestrated() as server:
        caller = Client(server)
        view = pump.start(caller)
        workflow = view["workflow"]["id"]
        server.kill9()
        server.start()
        # Nobody waits for the execution: the technician goes on at once.
        view = expect(submit(caller, expect(caller.call("get_status", workflow_id=workflow), "view")), "recorded")
        # The leases of a server that was killed are over after 30 seconds.
        until(lambda: server.executions(workflow) == {1: "RUNNING"}, 90, "one execution")
        server.kill9()
        server.start()
        view = drive(caller, expect(caller.call("get_status", workflow_id=workflow), "view"))
        expect(caller.call("finish_workflow", workflow_id=workflow, result="passed", idempotency_key=new_key()), "finished")
        server.kill9()
        server.start()
        server.ends_with(workflow)
        assert set(server.executions(workflow)) == {1}, server.executions(workflow)


def shortened():
    """The shipped calibration with times that a test can wait for."""
    folder = fresh_folder()
    with open(os.path.join(SHIPPED, f"{CALIBRATION}.yaml"), encoding="utf-8") as file:
        text = file.read()
    for long, short in (("duration: 30m", "duration: 3s"), ("respond_within: 15m", "respond_within: 3s")):
        assert long in text, long
        text = text.replace(long, short)
    with open(os.path.join(folder, f"{CALIBRATION}.yaml"), "w", encoding="utf-8") as file:
        file.write(text)
    return f'[procedures]\ndir = "{folder}"\n'


@case("a calibration: its wait, a block that goes to the next person, both over kill -9, and a second person's signature")
def calibration():
    with Orchestrated(config='[auth]\nmode = "dev"\n' + shortened()) as server:
        ann = as_person(server, issue(server, "ann"))
        eve = as_person(server, issue(server, "eve", SUPERVISOR))
        eve.known_schemas()
        inputs = {"certificate": "CAL-2207", "tolerance": 0.002}
        assets = {"balance": "BAL-12", "weights": "WS-3"}
        view = expect(ann.call("start_workflow", procedure_id=CALIBRATION, assets=assets, inputs=inputs, idempotency_key=new_key()), "started")
        workflow = view["workflow"]["id"]
        view = expect(submit(ann, view), "recorded")
        server.kill9()
        server.start()
        view = until(lambda: (lambda out: out if out["outcome"] == "recorded" else None)(submit(ann, view)), 30, "the end of the wait")
        until(lambda: server.executions(workflow) == {1: "RUNNING"}, 90, "one execution")
        view = expect(submit(ann, view), "recorded")
        view = expect(submit(ann, view, too_high(view["step"])), "out_of_range")
        server.kill9()
        server.start()
        told = until(lambda: kinds(ann, workflow, "escalated"), 60, "the next person is told")
        blocked = expect(ann.call("get_status", workflow_id=workflow), "view")
        decision = dict(workflow_id=workflow, block_id=blocked["blocks"][0]["id"], decision="require_redo", comment="a draught")
        expect(eve.call("resolve_block", **decision, idempotency_key=new_key()), "resolved")
        view = drive(ann, expect(ann.call("get_status", workflow_id=workflow), "view"), lambda v: v["step"]["kind"] == "sign")
        signed = expect(submit(eve, view), "recorded")
        assert not signed.get("step"), signed
        done = expect(ann.call("finish_workflow", workflow_id=workflow, result="calibrated", idempotency_key=new_key()), "finished")
        assert done["workflow"]["state"] == "COMPLETED", done
        server.ends_with(workflow)
        # Each person is told once, whoever says that the time is over: the execution, or the server's own clock.
        assert len(kinds(ann, workflow, "escalated")) == len(told), (told, history(ann, workflow))


@case("an execution that somebody stops by hand gets a successor; the workflow does not notice")
def stopped_by_hand():
    with Orchestrated() as server:
        caller = Client(server)
        view = pump.start(caller)
        workflow = view["workflow"]["id"]
        until(lambda: kinds(caller, workflow, "orchestration_acknowledged"), 60, "an acknowledged start")
        assert server.executions(workflow) == {1: "RUNNING"}, server.executions(workflow)
        before = len(history(caller, workflow))
        name = next(one["executionArn"] for one in server.states("ListExecutions", stateMachineArn=server.machine)["executions"])
        server.states("StopExecution", executionArn=name)
        view = expect(submit(caller, view), "recorded")
        view = drive(caller, view)
        expect(caller.call("finish_workflow", workflow_id=workflow, result="passed", idempotency_key=new_key()), "finished")
        until(lambda: not server.executions(workflow, "RUNNING"), 60, "an end of all executions")
        assert len(history(caller, workflow)) > before
        server.verify()


if __name__ == "__main__":
    run_cases()
