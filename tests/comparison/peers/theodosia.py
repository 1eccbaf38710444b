"""Theodosia: a Burr state machine of ten actions, one session for each visit."""
import json
import sqlite3

from peers.peer import Peer
from places import HERE
from servers import Refused, Stdio


class Theodosia(Peer):
    name, licence = "Theodosia", "Apache-2.0"
    purpose = "mounts a Burr state machine of your program as an MCP server, so that an agent takes only the steps that are open"
    mapping = ("an own program of 50 lines with ten actions in a chain and Burr's persister in SQLite; a reading is `step(action, inputs, session)`; "
               "read from the persister's table, since only the current session's state has an address")

    def __init__(self, folder, places):
        super().__init__(folder, places)
        self.version = places.pinned("theodosia", "theodosia")
        command = [places.environment("theodosia") / "python", HERE / "services" / "theodosia_readings.py", folder]
        self.server = Stdio(command, folder, {"HOME": str(folder)})

    async def open(self, run, asset, key):
        return run

    async def record(self, handle, step, value, key):
        answer = await self.server.call("step", action=f"reading_{step:02}", inputs={"value": value}, session=handle)
        if "error" in answer:
            raise Refused(json.dumps(answer)[:300])

    async def read(self, handle):
        db = sqlite3.connect(f"file:{self.folder}/burr.db?mode=ro", uri=True)
        try:
            row = db.execute("SELECT state FROM burr_state WHERE app_id = ? ORDER BY sequence_id DESC LIMIT 1", (handle,)).fetchone()
        finally:
            db.close()
        state = json.loads(row[0]) if row else {}
        return [(int(name[-2:]), value) for name, value in sorted(state.items()) if name.startswith("reading_")]
