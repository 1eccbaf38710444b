"""The official Python client drives the pump inspection, in both protocol generations.

The client validates structured content itself; here each answer is validated again under two drafts and
against docs/result.schema.json. The last case shows that those checks refuse a broken answer.
"""
import asyncio
import copy
import json

from mcp import Client as OfficialClient

import answers
import pump
from client import Answer, expect, expect_error, good_value, new_key, step_arguments, too_high
from harness import Server, case, run_cases


class Caller:
    """Calls tools through the official client and checks each answer like every other test does."""

    def __init__(self, official, tools):
        self.official = official
        self.schemas = answers.Schemas(tools)
        self.names = [tool["name"] for tool in tools]

    async def call(self, tool, **arguments):
        result = await self.official.call_tool(tool, arguments)
        answer = Answer(tool, result.model_dump(mode="json", by_alias=True, exclude_none=True))
        self.schemas.check(tool, answer.out)
        answers.check_envelope(tool, answer.out)
        faults = answers.speech_faults(answer.out, self.names)
        assert not faults, f"{tool}: the speech {faults}: {answer.out['speech']!r}"
        return answer

    async def submit(self, view, value=None):
        arguments = step_arguments(view, value or good_value(view["step"]), new_key())
        answer = await self.call("submit_step", **arguments)
        if answer.out["outcome"] == "needs_confirmation":
            answer = await self.call("submit_step", **arguments, confirm_token=answer.out["confirm"]["token"])
        return answer.out


async def inspect(server, mode, revision):
    async with OfficialClient(f"http://127.0.0.1:{server.port}/mcp", mode=mode) as official:
        assert official.protocol_version == revision, f"negotiated {official.protocol_version}"
        assert official.instructions, "the server tells a model no rules"
        listed = await official.list_tools()
        tools = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools]
        caller = Caller(official, tools)
        await whole_job(caller)


async def whole_job(caller):
    """Find, start, a duplicate, a refusal, a block, a resolution, the rest, finish."""
    found = (await caller.call("find_work")).out
    assert any(c.get("procedure_id") == pump.PROCEDURE for c in found["candidates"]), found
    arguments = pump.start_arguments(key=new_key())
    first, again = await caller.call("start_workflow", **arguments), await caller.call("start_workflow", **arguments)
    expect(first.out, "started", duplicate=False)
    expect(again.out, "started", duplicate=True)
    assert again.stored() == first.stored(), "a replay repeats the stored bytes"
    view = first.out
    workflow = view["workflow"]["id"]
    refused = await caller.call("submit_step", workflow_id=workflow, step_id="no-such-step", value="1")
    expect_error(refused.out, "VALIDATION_ERROR")
    while view["step"]["kind"] != "number":
        view = expect(await caller.submit(view), "recorded")
    high = too_high(view["step"])
    verdict = (await caller.call("check_value", workflow_id=workflow, step_id=view["step"]["id"], value=high)).out
    expect(verdict, "verdict")
    view = expect(await caller.submit(view, high), "out_of_range")
    block = view["blocks"][0]
    assert pump.REDO in [decision["id"] for decision in block["decisions"]], block
    view = (await caller.call("resolve_block", workflow_id=workflow, block_id=block["id"], decision=pump.REDO,
                              comment="gauge was not zeroed", idempotency_key=view["next_idempotency_key"])).out
    expect(view, "resolved")
    while view.get("step"):
        view = expect(await caller.submit(view), "recorded")
    done = (await caller.call("finish_workflow", workflow_id=workflow, result="passed",
                              idempotency_key=view["next_idempotency_key"])).out
    expect(done, "finished")
    assert done["workflow"]["state"] == "COMPLETED" and done["workflow"]["result"] == "passed", done
    full = (await caller.call("get_status", workflow_id=workflow, detail="full")).out
    assert [event["seq"] for event in full["history"]] == list(range(1, full["workflow"]["revision"] + 1)), full["history"]
    expect((await caller.call("get_status")).out, "none")


@case("legacy mode, 2025-11-25: the whole inspection")
def legacy():
    with Server() as server:
        asyncio.run(inspect(server, "legacy", "2025-11-25"))
        server.verify()


@case("auto mode, 2026-07-28: the whole inspection")
def modern():
    with Server() as server:
        asyncio.run(inspect(server, "auto", "2026-07-28"))
        server.verify()


@case("the schema checks refuse a broken answer")
def control():
    with Server() as server:
        asyncio.run(broken_answers(server))


async def broken_answers(server):
    async with OfficialClient(f"http://127.0.0.1:{server.port}/mcp", mode="legacy") as official:
        tools = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in (await official.list_tools()).tools]
        caller = Caller(official, tools)
        good = (await caller.call("start_workflow", **pump.start_arguments(key=new_key()))).out
    breaks = {
        "ok missing": lambda out: out.pop("ok"),
        "speech missing": lambda out: out.pop("speech"),
        "speech is a number": lambda out: out.update(speech=1),
        "duplicate is a string": lambda out: out.update(duplicate="no"),
        "workflow is a string": lambda out: out.update(workflow="w"),
    }
    deeper = {
        "unknown outcome": lambda out: out.update(outcome="perhaps"),
        "empty speech": lambda out: out.update(speech=""),
        "speech of 241 characters": lambda out: out.update(speech="a" * 241),
        "unknown state": lambda out: out["workflow"].update(state="FAILED"),
        "revision is a string": lambda out: out["workflow"].update(revision="1"),
        "unknown step kind": lambda out: out["step"].update(kind=7),
    }
    full = caller.schemas.full
    for name, spoil in {**breaks, **deeper}.items():
        out = copy.deepcopy(good)
        spoil(out)
        assert not full.is_valid(out), f"docs/result.schema.json accepts an answer with {name}: {json.dumps(out)[:600]}"
        if name in breaks:
            for validator in caller.schemas.tools["start_workflow"]:
                assert not validator.is_valid(out), f"the envelope ({type(validator).__name__}) accepts an answer with {name}"


if __name__ == "__main__":
    run_cases()
