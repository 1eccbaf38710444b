"""The official Python client drives the pump inspection, in both protocol generations.

official.py has the client and its checks. The last case shows that those checks refuse a broken answer.
"""
import asyncio
import copy
import json

from mcp import Client as OfficialClient

import pump
from client import new_key
from harness import Server, case, run_cases
from official import Caller, inspect


def url(server):
    return f"http://127.0.0.1:{server.port}/mcp"


@case("legacy mode, 2025-11-25: the whole inspection")
def legacy():
    with Server() as server:
        asyncio.run(inspect(url(server), "legacy", "2025-11-25"))
        server.verify()


@case("auto mode, 2026-07-28: the whole inspection")
def modern():
    with Server() as server:
        asyncio.run(inspect(url(server), "auto", "2026-07-28"))
        server.verify()


@case("the schema checks refuse a broken answer")
def control():
    with Server() as server:
        asyncio.run(broken_answers(server))


async def broken_answers(server):
    async with OfficialClient(url(server), mode="legacy") as official:
        caller = await Caller.of(official)
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
