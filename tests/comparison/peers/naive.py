"""What a Python author would write instead: tests/bench/peer.py, the official SDK and sqlite3."""
import json
import re
import sqlite3
from pathlib import Path

from peers.peer import Peer
from servers import Busy, Http, Refused

PROGRAM = Path(__file__).resolve().parents[2] / "bench" / "peer.py"


class Announced(Http):
    """A server that takes a free port and prints its address."""

    async def run(self, now):
        self.port, self.before = None, self.log().tell()
        await super().run(now)

    def answers(self):
        with open(self.folder / "server.log", "rb") as log:
            log.seek(self.before)
            found = re.search(rb"http://127\.0\.0\.1:(\d+)/mcp", log.read())
        if found is None:
            return False
        self.port = int(found.group(1))
        return super().answers()


class Naive(Peer):
    name, licence = "Python and sqlite3", "part of this repository"
    purpose = "about 100 lines with the official MCP SDK: the key, the step and the reading in one transaction of SQLite"
    mapping = "a reading is `submit_step`; it has no tool to read, so its table of events is read"
    key = "`idempotency_key`"

    def __init__(self, folder, places):
        super().__init__(folder, places)
        self.version = f"mcp {places.pinned('bench', 'mcp')}"
        self.server = Announced([places.python, PROGRAM, folder], folder, None, [{}] * places.callers)

    async def call(self, tool, **arguments):
        answer = await self.server.call(tool, **arguments)
        if answer["ok"]:
            return answer
        raise (Busy if answer["speech"] == "ASSET_LOCKED" else Refused)(answer["speech"])

    async def open(self, run, asset, key):
        answer = await self.call("start_workflow", procedure_id="round", assets={"unit": asset}, idempotency_key=key)
        return answer["workflow"]["id"]

    async def record(self, handle, step, value, key):
        await self.call("submit_step", workflow_id=handle, step_id=f"reading_{step:02}", value=value, idempotency_key=key)

    async def close(self, handle, key):
        await self.call("finish_workflow", workflow_id=handle, result="done", idempotency_key=key)

    async def read(self, handle):
        db = sqlite3.connect(f"file:{self.folder}/peer.db?mode=ro", uri=True)
        try:
            rows = [json.loads(body) for (body,) in db.execute("SELECT body FROM events WHERE workflow_id = ? ORDER BY seq", (handle,))]
        finally:
            db.close()
        return [(int(event["step_id"][-2:]), event["value"]) for event in rows if event["kind"] == "step_recorded"]
