"""The negative control: the server of planted.py, which spoils readings on purpose and writes down how many."""
from pathlib import Path

from peers.peer import Peer
from servers import Refused
from peers.naive import Announced

PROGRAM = Path(__file__).resolve().parent.parent / "planted.py"


class Planted(Peer):
    name, licence = "planted", "part of this repository"
    purpose = "spoils readings on purpose: the counts must be what it planted"
    mapping = "a reading is `record`"
    key = "`key`"

    def __init__(self, folder, places):
        super().__init__(folder, places)
        self.version = "–"
        self.server = Announced([places.python, PROGRAM, folder], folder, None, [{}] * places.callers)

    async def call(self, tool, **arguments):
        answer = await self.server.call(tool, **arguments)
        if not answer["ok"]:
            raise Refused(answer["why"])
        return answer

    async def open(self, run, asset, key):
        return run

    async def record(self, handle, step, value, key):
        await self.call("record", run=handle, step=step, value=value, key=key)

    async def read(self, handle):
        return [(step, value) for step, value in (await self.call("read", run=handle))["readings"]]

    async def planted(self):
        """What it did on purpose: {"lost": …, "doubled": …, "misplaced": …, "reuse_recorded": …, "replaced": …}."""
        return (await self.call("planted"))["planted"]
