"""task-orchestrator-py: an item for each step, with a note for its reading."""
import json

from peers.peer import Peer
from servers import CALLER, Busy, Refused, Stdio

STEPS = range(1, 11)


class TaskOrchestratorPy(Peer):
    name, licence = "task-orchestrator-py", "MIT"
    purpose = "keeps the work items of agents: a graph of items with phases, dependencies, notes and claims"
    mapping = ("an item for each step, each blocked by the one before; a reading is `manage_notes(upsert)` under a key of the call and then `advance_item(complete)`; "
               "the asset is held with `claim`; read with `query_notes`")

    key = "the key of a note"

    def __init__(self, folder, places):
        super().__init__(folder, places)
        self.version = places.pinned("task-orchestrator-py", "task-orchestrator-py")
        self.server = Stdio([places.environment("task-orchestrator-py") / "task-orchestrator-py"], folder, {"HOME": str(folder)})
        self.sessions = {}

    async def call(self, tool, **arguments):
        answer = await self.server.call(tool, **arguments)
        if isinstance(answer, dict) and isinstance(answer.get("result"), str):
            answer = json.loads(answer["result"])
        if isinstance(answer, dict) and "error" in answer:
            raise Refused(f"{answer['error']['code']}: {answer['error']['message']}")
        return answer

    async def session(self):
        if CALLER.get() not in self.sessions:
            self.sessions[CALLER.get()] = (await self.call("agent_register", cli=f"caller-{CALLER.get()}"))["session_id"]
        return self.sessions[CALLER.get()]

    async def open(self, run, asset, key):
        try:
            await self.call("claim", subject_type="resource", subject_ref=asset, resource_type="asset", session_id=await self.session())
        except Refused as refused:
            raise Busy(str(refused)) from refused
        children = [{"ref": f"r{step}", "title": f"reading {step}"} for step in STEPS]
        order = [{"from": f"r{step}", "to": f"r{step + 1}"} for step in STEPS[:-1]]
        tree = await self.call("create_work_tree", root_title=f"{asset} {run}", children_json=json.dumps(children), deps_json=json.dumps(order))
        return {"asset": asset, "items": [child["id"] for child in tree["children"]]}

    async def record(self, handle, step, value, key):
        item = handle["items"][step - 1]
        await self.call("manage_notes", operation="upsert", item_id=item, key=key, body=value)
        await self.call("advance_item", item_id=item, trigger="complete")

    async def close(self, handle, key):
        await self.call("release", subject_type="resource", subject_ref=handle["asset"], session_id=await self.session())

    async def read(self, handle):
        found = []
        for step in STEPS:
            found += [(step, note["body"]) for note in await self.call("query_notes", item_id=handle["items"][step - 1])]
        return found
