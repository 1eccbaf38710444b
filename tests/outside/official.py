"""The official Python client: calls tools through it, checks each answer, and does the whole inspection.

Used over HTTP (python_client.py) and over standard input and output (stdio.py). The client validates structured content
itself; here each answer is validated again under two drafts and against docs/result.schema.json.
"""
import json

from mcp import Client as OfficialClient

import answers
import pump
from client import Answer, expect, expect_error, good_value, new_key, step_arguments, too_high


class Caller:
    """Calls tools through the official client and checks each answer like every other test does."""

    def __init__(self, official, tools):
        self.official = official
        self.schemas = answers.Schemas(tools)
        self.names = [tool["name"] for tool in tools]

    @staticmethod
    async def of(official):
        listed = await official.list_tools()
        return Caller(official, [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools])

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


async def inspect(target, mode, revision):
    """The whole inspection over a connection to `target`: a URL, or a command to start."""
    async with OfficialClient(target, mode=mode) as official:
        assert official.protocol_version == revision, f"negotiated {official.protocol_version}"
        assert official.instructions, "the server tells a model no rules"
        workflow = await whole_job(await Caller.of(official))
        await read_resources(official, workflow)


async def whole_job(caller):
    """Find, start, a duplicate, a refusal, a block, a resolution, the rest, finish. Returns the id of the workflow."""
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
    return workflow


async def read_resources(official, workflow):
    """Lists the resources, and reads a procedure and the workflow."""
    listed = await official.list_resources()
    addresses = [str(resource.uri) for resource in listed.resources]
    assert f"workflow://procedures/{pump.PROCEDURE}" in addresses, addresses
    for address, has in ((f"workflow://procedures/{pump.PROCEDURE}", pump.PROCEDURE), (f"workflow://workflows/{workflow}", workflow)):
        read = await official.read_resource(address)
        json.loads(read.contents[0].text)
        assert has in read.contents[0].text, read
