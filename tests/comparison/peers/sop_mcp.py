"""sop-mcp: a procedure in Markdown that is read out step by step."""
from peers.peer import Peer
from servers import Refused, Stdio

NAME = "round_of_readings"
STEPS = range(1, 11)


def document():
    head = ["---", f"name: {NAME}", "owner: comparison", "stage: prod", "version: 1", "---", "", "# Round of readings", "",
            "## Overview", "", "Ten readings, one after the other.", "", "## Parameters", "", "- **unit** (required): what is read", "",
            "## Steps", ""]
    steps = [line for step in STEPS for line in (
        f"### {step}. Reading {step}", "", f"Read the instrument and say reading {step}.", "",
        "**Constraints:**", "- You MUST say the value that is shown", "", f"**Expected Output:** reading {step} in bar", "")]
    return "\n".join(head + steps)


class SopMcp(Peer):
    name, licence = "sop-mcp", "Apache-2.0"
    purpose = "reads procedures in Markdown out to an agent step by step, with versions; it does not claim to keep runs"
    mapping = "a reading is `run_sop(current_step, step_output)`; there is nothing to read it back from"
    keeps = False

    def __init__(self, folder, places):
        super().__init__(folder, places)
        self.version = places.pinned("sop-mcp", "sop-mcp")
        self.server = Stdio([places.environment("sop-mcp") / "sop-mcp"], folder, {"HOME": str(folder), "SOP_STORAGE_DIR": str(folder / "sops")})

    async def start(self):
        await super().start()
        await self.server.call("publish_sop", content=document(), stage="prod")

    async def open(self, run, asset, key):
        await self.server.call("run_sop", sop_name=NAME, current_step=0)
        return run

    async def record(self, handle, step, value, key):
        await self.server.call("run_sop", sop_name=NAME, current_step=step, step_output=value)

    async def read(self, handle):
        return []
