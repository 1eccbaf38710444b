"""@allpepper/task-orchestrator: a task for each visit, with a section for each step."""
import json

from peers.peer import Peer
from servers import Refused, Stdio

STEPS = range(1, 11)
# What a section holds before its reading: it must not be empty.
EMPTY = "-"


class Allpepper(Peer):
    name, licence = "@allpepper/task-orchestrator", "MIT"
    purpose = "keeps projects, features and tasks of agents, with pipelines and a version for each thing that changes"
    mapping = "a task for each visit with ten sections; a reading is `manage_sections(updateText)` of the version that was read; read with `query_sections`"
    key = "`version`, an optimistic lock"

    def __init__(self, folder, places):
        super().__init__(folder, places)
        self.version = places.node_version("@allpepper/task-orchestrator")
        modules = places.node() / "node_modules"
        command = [modules / ".bin" / "bun", "run", modules / "@allpepper" / "task-orchestrator" / "src" / "server.ts", "--stdio"]
        self.server = Stdio(command, folder, {"HOME": str(folder), "TASK_ORCHESTRATOR_HOME": str(folder / "home")})

    async def call(self, tool, **arguments):
        answer = await self.server.call(tool, **arguments)
        if not answer.get("success"):
            raise Refused(json.dumps(answer)[:300])
        return answer["data"]

    async def open(self, run, asset, key):
        made = await self.call("manage_container", operation="create", containerType="task", title=f"{asset} {run}", summary="Ten readings",
                               priority="MEDIUM", complexity=1)
        sections = [{"title": f"reading {step}", "usageDescription": "a reading", "content": EMPTY, "contentFormat": "PLAIN_TEXT", "ordinal": step}
                    for step in STEPS]
        task = made["task"]["id"]
        made = await self.call("manage_sections", operation="bulkCreate", entityType="TASK", entityId=task, sections=json.dumps(sections))
        return {"task": task, "sections": [(section["id"], section["version"]) for section in made]}

    async def record(self, handle, step, value, key):
        section, version = handle["sections"][step - 1]
        await self.call("manage_sections", operation="updateText", sectionId=section, content=value, version=version)

    async def read(self, handle):
        sections = await self.call("query_sections", entityType="TASK", entityId=handle["task"])
        return [(int(section["title"].split()[1]), section["content"]) for section in sections if section["content"] != EMPTY]
