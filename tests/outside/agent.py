"""An agent that knows only what tools/list and tool results tell it.

It has never heard of a procedure: every id, step, unit, reason, decision and result below comes out of an answer, and
the last case checks that none of them stands in this file. It starts from `find_work` and goes through a keyless start,
a skip, an out-of-range value with read-back, a block, a problem report, corrections and a finish; each answer is also
checked as speech. It knows the generic result shape (which kinds of step there are and what each kind takes), no more.
"""
import json
import re

from answers import speech_faults, walk
from client import Client, expect, expect_error, good_value, step_arguments, too_high
from harness import Server, case, run_cases


class Unsuitable(Exception):
    """The procedure cannot be driven alone and at once (it waits, or wants a second person)."""


class Agent:
    """One conversation. `told` collects every id it was told, `seen` every step as it was shown, in order."""

    def __init__(self, server):
        self.client = Client(server)
        self.tools = {tool["name"]: tool for tool in self.client.rpc("tools/list")["result"]["tools"]}
        self.told, self.seen, self.ending = set(), {}, set()
        self.to_do = {"block", "skip", "correct", "problem"}

    def call(self, tool, **arguments):
        """Calls a tool with arguments that its own schema names, and listens to the answer as a person would."""
        known = self.tools[tool]["inputSchema"]
        assert set(known.get("required", [])) <= set(arguments) <= set(known["properties"]), (tool, arguments)
        out = self.client.call(tool, **arguments)
        faults = speech_faults(out, self.tools)
        assert not faults, f"{tool}: the speech {'; '.join(faults)}: {out['speech']!r} of {json.dumps(out)[:900]}"
        content = {key: value for key, value in out.items() if key != "error"}
        self.told |= {v for k, v in walk(content) if isinstance(v, str) and k in ("id", "code", "unit", "procedure_id", "name", "role")}
        if out.get("step"):
            self.seen[out["step"]["id"]] = out["step"]
        return out

    def twice(self, tool, **arguments):
        """The same call without a key, twice: the second answers what the first did and does nothing."""
        first = self.call(tool, **arguments)
        if not first["ok"] or first["outcome"] == "needs_confirmation":
            return first
        assert not first["duplicate"], first
        again = self.call(tool, **arguments)
        assert again["duplicate"] and {**again, "duplicate": False} == first, (first, again)
        now = self.call("get_status", workflow_id=first["workflow"]["id"])
        assert now["workflow"]["revision"] == first["workflow"]["revision"], ("the second call wrote something", first, now)
        return first

    # Steps.

    def submit(self, view, value):
        """One value, read back if the server asks; the confirmed form keeps the arguments and adds the token."""
        arguments = step_arguments(view, value)
        out = self.twice("submit_step", **arguments)
        if out["outcome"] == "needs_confirmation":
            assert out["confirm"]["read_back"] in out["speech"], ("what is to be confirmed is not spoken", out)
            out = self.twice("submit_step", **arguments, confirm_token=out["confirm"]["token"])
        return out

    def take(self, view):
        """Deals with the open step: out of range if that was never tried, a skip if it may be skipped, else a good value."""
        step = view["step"]
        if step["kind"] in ("wait", "sign"):
            raise Unsuitable(step["kind"])
        if "block" in self.to_do and step["kind"] == "number" and step.get("max"):
            return self.go_too_high(view)
        # A number is needed for the correction first.
        skippable = step["kind"] != "number" or "correct" not in self.to_do
        if "skip" in self.to_do and skippable and (step.get("skip") == "reason" or step.get("required") is False):
            return self.skip(view)
        if step.get("recheck"):
            return expect(self.submit(view, step["recheck"]["value"]), "recorded")
        return expect(self.submit(view, good_value(step)), "recorded", "out_of_range")

    def go_too_high(self, view):
        """A value just above what is accepted: judged first, then read back, then recorded, then resolved."""
        step, value = view["step"], too_high(view["step"])
        expect(self.call("check_value", **step_arguments(view, value)), "verdict")
        unchanged = self.call("get_status", workflow_id=view["workflow"]["id"])
        assert unchanged["workflow"]["revision"] == view["workflow"]["revision"], "checking a value records nothing"
        out = expect(self.submit(view, value), "out_of_range")
        assert out["last_recorded"]["step_id"] == step["id"] and out["last_recorded"]["value"] == value, out
        if out["workflow"]["state"] == "BLOCKED":
            self.to_do.discard("block")
            expect_error(self.call("submit_step", **step_arguments(view, good_value(step))), "INVALID_TRANSITION")
            out = self.resolve(out)
        return out

    def resolve(self, view):
        """Takes a told decision; one that turned out to end the workflow is not taken again."""
        for block in view["blocks"]:
            assert block["question"] and block["decisions"], block
            refused = self.call("resolve_block", workflow_id=view["workflow"]["id"], block_id=block["id"], decision=block["id"], comment="not one of them")
            expect_error(refused, "DECISION_NOT_ALLOWED")
            choices = [d["id"] for d in block["decisions"] if d["id"] not in self.ending]
            assert choices, ("no decision is left that goes on", block)
            view = self.twice("resolve_block", workflow_id=view["workflow"]["id"], block_id=block["id"], decision=choices[0], comment="looked at it again")
            expect(view, "resolved")
            if view["workflow"]["state"] == "COMPLETED":
                self.ending.add(choices[0])
                raise Ended
        assert view["workflow"]["state"] == "RUNNING" and not view.get("blocks"), view
        return view

    def skip(self, view):
        step, reasons = view["step"], view["workflow"]["reasons"]
        out = self.twice("skip_step", workflow_id=view["workflow"]["id"], step_id=step["id"], reason_code=reasons[0]["code"], note="not needed today")
        expect(out, "skipped")
        assert out.get("step", {}).get("id") != step["id"], out
        self.to_do.discard("skip")
        return out

    def correct(self, view):
        """Corrects the number just recorded to another good value; whatever used it is asked again."""
        workflow, step = view["workflow"], self.seen[view["last_recorded"]["step_id"]]
        before = self.call("get_status", workflow_id=workflow["id"], detail="full")["history"]
        other = good_value({**step, "min": good_value(step)})
        arguments = step_arguments({"workflow": workflow, "step": step}, other)
        refused = self.call("correct_step", **arguments, reason_code=step["id"])
        told = json.dumps(expect_error(refused, "REASON_REQUIRED", "VALIDATION_ERROR").get("details"))
        assert all(json.dumps(reason["code"]) in told for reason in workflow["reasons"]), ("the refusal names the reasons", refused)
        arguments["reason_code"] = workflow["reasons"][-1]["code"]
        out = self.twice("correct_step", **arguments)
        if out["outcome"] == "needs_confirmation":
            out = self.twice("correct_step", **arguments, confirm_token=out["confirm"]["token"])
        expect(out, "corrected")
        after = self.call("get_status", workflow_id=workflow["id"], detail="full")["history"]
        assert after[:len(before)] == before, ("the first value stays in the history", before, after)
        assert [e for e in after[len(before):] if e.get("step_id") == step["id"] and e.get("value") == other], (other, after)
        self.to_do.discard("correct")
        return out

    def report(self, view):
        out = self.twice("report_problem", workflow_id=view["workflow"]["id"], summary="the floor is wet", severity="high")
        assert out["workflow"]["state"] == "BLOCKED" and len(out["blocks"]) == 1, out
        self.to_do.discard("problem")
        return self.resolve(out)

    # The whole.

    def begin(self, candidate):
        """Starts what was offered, with what it says it needs; asks twice without a key and gets one workflow."""
        procedure, needs = candidate["procedure_id"], candidate["needs"]
        asked = self.call("start_workflow", procedure_id=procedure)
        if needs["assets"] or any(i["required"] for i in needs["inputs"]):
            expect(asked, "needs_input")
            none = self.call("get_status")
            expect(none, "none")
        arguments = {
            "procedure_id": procedure,
            "assets": {asset["role"]: asset["example"] for asset in needs["assets"]},
            "inputs": {i["name"]: i.get("example", {"number": 1, "integer": 1, "boolean": True}.get(i["kind"], "A 1")) for i in needs["inputs"] if i["required"]},
        }
        view = expect(self.call("start_workflow", **arguments), "started", duplicate=False)
        again = expect(self.call("start_workflow", **arguments), "joined")
        assert again["workflow"] == view["workflow"], (view, again)
        return view, arguments

    def finish(self, view):
        result = view["workflow"]["results"][0]["id"]
        out = self.twice("finish_workflow", workflow_id=view["workflow"]["id"], result=result)
        expect(out, "finished")
        assert out["workflow"]["state"] == "COMPLETED" and out["workflow"]["result"] == result, out
        return out

    def work(self, candidate):
        view, arguments = self.begin(candidate)
        while view.get("step"):
            view = self.take(view)
            if view["workflow"]["state"] == "BLOCKED":
                view = self.resolve(view)
            number = view["outcome"] == "recorded" and self.seen[view["last_recorded"]["step_id"]]["kind"] == "number"
            if number and "correct" in self.to_do and "block" not in self.to_do:
                view = self.correct(view)
            elif "correct" not in self.to_do and "problem" in self.to_do:
                view = self.report(view)
        assert not self.to_do, f"the procedure gave no occasion for {sorted(self.to_do)}"
        return self.finish(view), arguments


class Ended(Exception):
    """A decision ended the workflow; the next attempt takes another."""


def drive_offer(offer):
    """Drives the offered procedure with this index on a fresh server; returns the agent and what it started."""
    ending = set()
    for _ in range(4):
        with Server() as server:
            agent = Agent(server)
            agent.ending = ending
            found = expect(agent.call("find_work"), "list")
            offers = [c for c in found["candidates"] if c.get("needs")]
            if offer >= len(offers):
                raise AssertionError("no offered procedure can be driven alone and at once")
            try:
                done, arguments = agent.work(offers[offer])
            except Ended:
                continue
            aftermath(agent, offers[offer], done, arguments)
            server.verify()
            return agent
    raise AssertionError("every decision ends the workflow")


def aftermath(agent, offer, done, arguments):
    """What is said once it is over: nothing open, the asset's last inspection, and the asset is free for another."""
    none = expect(agent.call("get_status"), "none")
    assert none["last_completed"]["workflow_id"] == done["workflow"]["id"], none
    for asset in done["workflow"]["assets"]:
        by_asset = agent.call("find_work", asset_id=asset["id"])
        assert by_asset["last_completed"]["workflow_id"] == done["workflow"]["id"], by_asset
    word = re.findall(r"\w+", offer["label"])[0]
    assert offer["procedure_id"] in [c.get("procedure_id") for c in agent.call("find_work", query=word.upper()[:4])["candidates"]], word
    nothing = agent.call("find_work", query="zzzzzz")
    assert nothing["ok"] and not nothing.get("candidates"), nothing
    expect(agent.call("start_workflow", **arguments), "started", duplicate=False)
    two_open(agent, arguments)


def two_open(agent, arguments):
    """A second workflow on a neighbouring asset: a question that names neither is asked back, never guessed."""
    other = {role: re.sub(r"\d(?=\D*$)", lambda digit: str((int(digit[0]) + 1) % 10), asset) for role, asset in arguments["assets"].items()}
    if other == arguments["assets"]:
        return
    expect(agent.call("start_workflow", **{**arguments, "assets": other}), "started")
    asked = expect(agent.call("get_status"), "disambiguation")
    assert len(asked["candidates"]) == 2, asked
    for candidate in asked["candidates"]:
        assert candidate["label"] in asked["speech"], asked
        one = expect(agent.call("get_status", workflow_id=candidate["workflow_id"]), "view")
        for asset in one["workflow"]["assets"]:
            assert agent.call("get_status", asset_id=asset["id"])["workflow"]["id"] == candidate["workflow_id"], asset
    held = agent.call("start_workflow", **{**arguments, "inputs": {name: f"{value} b" if isinstance(value, str) else value for name, value in arguments["inputs"].items()}})
    expect_error(held, "ASSET_LOCKED")


DROVE = []


@case("a block, a resolution, a skip, a correction, a problem and a finish from tool results alone")
def whole():
    for offer in range(5):
        try:
            DROVE.append(drive_offer(offer))
            return
        except Unsuitable:
            continue


@case("nothing that the agent was told stands in its source")
def ignorance():
    assert DROVE and len(DROVE[0].told) >= 8, "the agent was told nothing"
    with open(__file__, encoding="utf-8") as file:
        quoted = set(re.findall(r"[\"']([^\"'\n]*)[\"']", file.read()))
    known = DROVE[0].told & quoted
    assert not known, f"the agent knows {sorted(known)} beforehand"


if __name__ == "__main__":
    run_cases()
