"""The main job: a whole inspection over kill -9; nothing is lost, nothing is there twice, and the asset is free at the end."""
import pump
from client import Client, drive, expect, good_value, new_key, step_arguments, submit
from harness import Server, case, run_cases


def remembered(view):
    """What a restart must not change."""
    return {name: view["workflow"].get(name) for name in ("id", "state", "revision", "progress", "result")}, view.get("step")


@case("kill -9 between steps and right after an answer; resume, finish, and the history is what was answered")
def main_job():
    recorded = []

    def record(caller, view):
        step = view["step"]
        recorded.append((step["id"], good_value(step)))
        return expect(submit(caller, view), "recorded")

    with Server() as server:
        caller = Client(server)
        start = pump.start_arguments(key=new_key())
        view = expect(caller.call("start_workflow", **start), "started", duplicate=False)
        workflow = view["workflow"]["id"]
        while view["workflow"]["progress"]["settled"] < 2:
            view = record(caller, view)
        before = caller.call("get_status", workflow_id=workflow)
        server.kill9()
        server.start()
        after = caller.call("get_status", workflow_id=workflow)
        assert remembered(after) == remembered(before), (before, after)
        again = caller.call("start_workflow", **start)
        assert again["duplicate"] and again["workflow"]["id"] == workflow, again
        # Killed with the answer in our hands: it was said, so it is kept; and said again, it is not done again.
        arguments = step_arguments(after, good_value(after["step"]), new_key())
        recorded.append((after["step"]["id"], arguments["value"]))
        first = expect(caller.call("submit_step", **arguments), "recorded", duplicate=False)
        server.kill9()
        server.start()
        view = caller.call("submit_step", **arguments)
        assert view["duplicate"] and view["step"] == first["step"], (first, view)
        while view.get("step"):
            view = record(caller, view)
        done = expect(caller.call("finish_workflow", workflow_id=workflow, result="passed", idempotency_key=new_key()), "finished")
        assert done["workflow"]["state"] == "COMPLETED" and done["workflow"]["result"] == "passed", done
        full = caller.call("get_status", workflow_id=workflow, detail="full")
        history = full["history"]
        assert [(e["step_id"], e["value"]) for e in history if e["kind"] == "step_recorded"] == recorded, (history, recorded)
        assert [e["seq"] for e in history] == list(range(1, len(history) + 1)), "the history is gapless from 1"
        server.verify()
        none = caller.call("get_status")
        assert none["outcome"] == "none" and none["last_completed"]["workflow_id"] == workflow, none
        expect(caller.call("start_workflow", **pump.start_arguments(order="WO 2", key=new_key())), "started", duplicate=False)


@case("two servers on one state: each goes on where the other was killed")
def two_servers():
    with Server() as first:
        second = Server.beside(first).start()
        callers = [Client(first), Client(second)]
        view = pump.start(callers[0])
        workflow = view["workflow"]["id"]
        turn = 0
        while view.get("step") and view["workflow"]["progress"]["settled"] < 4:
            turn += 1
            view = expect(submit(callers[turn % 2], view), "recorded")
        first.kill9()
        view = drive(callers[1], view)
        expect(callers[1].call("finish_workflow", workflow_id=workflow, result="passed", idempotency_key=new_key()), "finished")
        first.start()
        full = callers[0].call("get_status", workflow_id=workflow, detail="full")
        assert full["workflow"]["state"] == "COMPLETED", full
        assert [e["seq"] for e in full["history"]] == list(range(1, len(full["history"]) + 1)), full
        assert second.stop() == 0
        first.verify()


if __name__ == "__main__":
    run_cases()
