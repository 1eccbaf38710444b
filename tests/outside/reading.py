"""Resources, prompts, completion, subscriptions and evidence through the official Python client, in both generations.

What is read is compared with what the tools say, and the evidence is verified by the binary without a server.
"""
import asyncio
import json
import subprocess
from pathlib import Path

from mcp import Client as OfficialClient
from mcp.types import PromptReference, ResourceTemplateReference

import pump
from client import new_key
from harness import Server, binary, case, run_cases
from official import Caller

WORKFLOW = "workflow://workflows/{id}"
HISTORY = "workflow://workflows/{id}/history{?page}"


def url(server):
    return f"http://127.0.0.1:{server.port}/mcp"


async def text(official, uri):
    read = await official.read_resource(uri)
    assert len(read.contents) == 1 and str(read.contents[0].uri) == uri, read
    return read.contents[0].text


async def begun(official, notes=0):
    """A workflow with a recorded step and so many notes."""
    caller = await Caller.of(official)
    view = (await caller.call("start_workflow", **pump.start_arguments(key=new_key()))).out
    view = await caller.submit(view)
    workflow = view["workflow"]["id"]
    for n in range(notes):
        await caller.call("report_problem", workflow_id=workflow, summary=f"note {n}", severity="note", idempotency_key=new_key())
    return caller, workflow


async def everything(server, mode, folder):
    async with OfficialClient(url(server), mode=mode) as official:
        caller, workflow = await begun(official, notes=120)
        listed = [str(resource.uri) for resource in (await official.list_resources()).resources]
        assert f"workflow://workflows/{workflow}" in listed and "workflow://schemas/result" in listed, listed
        templates = [template.uri_template for template in (await official.list_resource_templates()).resource_templates]
        assert WORKFLOW in templates and HISTORY in templates, templates
        schema = json.loads(await text(official, "workflow://schemas/result"))
        assert schema == caller.schemas.full.schema, "the resource is docs/result.schema.json"
        view = json.loads(await text(official, f"workflow://workflows/{workflow}"))
        assert view == (await caller.call("get_status", workflow_id=workflow)).out, view
        first = json.loads(await text(official, f"workflow://workflows/{workflow}/history"))
        second = json.loads(await text(official, f"workflow://workflows/{workflow}/history?page=2"))
        seqs = [event["seq"] for page in (first, second) for event in page["history"]]
        assert first["pages"] == 2 and seqs == list(range(1, first["revision"] + 1)), seqs
        await prompts(official, workflow)
        await completions(official, workflow)
        await refusals(official)
        evidence = await text(official, f"workflow://workflows/{workflow}/evidence")
    verified(folder, evidence, workflow, first["revision"])


async def prompts(official, workflow):
    names = [prompt.name for prompt in (await official.list_prompts()).prompts]
    assert {"resume_my_work", "explain_block", f"start_{pump.PROCEDURE}"} <= set(names), names
    resumed = await official.get_prompt("resume_my_work")
    assert workflow in resumed.messages[1].content.resource.text, resumed
    start = await official.get_prompt(f"start_{pump.PROCEDURE}", {"pump": "PUMP-9"})
    assert json.loads(start.messages[1].content.text)["assets"] == {"pump": "PUMP-9"}, start


async def completions(official, workflow):
    reference = ResourceTemplateReference(type="ref/resource", uri=HISTORY)
    completed = await official.complete(reference, {"name": "id", "value": workflow[:6]})
    assert workflow in completed.completion.values, completed
    reference = PromptReference(type="ref/prompt", name="explain_block")
    completed = await official.complete(reference, {"name": "workflow_id", "value": ""})
    assert completed.completion.values == [], "nothing is blocked"


async def refusals(official):
    for uri in ("workflow://workflows/nobody", "workflow://workflows/nobody/evidence", "shop://shelf"):
        try:
            await official.read_resource(uri)
        except Exception as error:  # The client's own class differs between its generations.
            assert "no such resource" in str(error), error
        else:
            raise AssertionError(f"{uri} was read")


def verified(folder, evidence, workflow, events):
    file = Path(folder, "evidence.json")

    def ask(document):
        file.write_text(document, encoding="utf-8")
        ran = subprocess.run([binary(), "verify-evidence", str(file), "--json"], capture_output=True, text=True, cwd=folder, check=False)
        return ran.returncode, json.loads(ran.stdout)

    code, said = ask(evidence)
    assert (code, said["ok"], said["workflow_id"], said["events"]) == (0, True, workflow, events), said
    code, said = ask(evidence.replace("note 7", "note 8", 1))
    assert (code, said["ok"]) == (4, False) and said["damage"], said


@case("legacy mode, 2025-11-25: resources, prompts, completion, evidence")
def legacy():
    with Server() as server:
        asyncio.run(everything(server, "legacy", server.folder))


@case("auto mode, 2026-07-28: resources, prompts, completion, evidence")
def modern():
    with Server() as server:
        asyncio.run(everything(server, "auto", server.folder))


@case("2026-07-28: a client that listens is told, and may listen again")
def listening():
    with Server() as server:
        asyncio.run(told(server))


async def told(server):
    async with OfficialClient(url(server), mode="auto") as official, OfficialClient(url(server), mode="legacy") as other:
        caller, workflow = await begun(official)
        uri = f"workflow://workflows/{workflow}"
        for round_ in range(2):
            async with official.listen(resource_subscriptions=[uri, "workflow://workflows/nobody"]) as subscription:
                writer = await Caller.of(other)
                await writer.call("report_problem", workflow_id=workflow, summary=f"round {round_}", severity="note", idempotency_key=new_key())
                change = await asyncio.wait_for(anext(aiter(subscription)), 20)
                assert uri in str(change), change


if __name__ == "__main__":
    run_cases()
