"""Checkpoint itself, over HTTP."""
import shutil
from pathlib import Path

from peers.peer import Peer
from servers import Busy, Gone, Http, Refused, free_port

PROCEDURE = Path(__file__).resolve().parent.parent / "procedure.yaml"


class Checkpoint(Peer):
    name, licence = "Checkpoint", "Apache-2.0"
    purpose = "keeps the authoritative record of procedures that people work through with an assistant"
    mapping = "a procedure of ten numbers; a reading is `submit_step`, an asset is held from `start_workflow` to `finish_workflow`; read with `get_status`"
    key = "`idempotency_key`"

    def __init__(self, folder, places):
        super().__init__(folder, places)
        self.version = places.said(places.checkpoint, "--version").split()[-1]
        port, configuration, procedures = free_port(), folder / "checkpoint.toml", folder / "procedures"
        procedures.mkdir()
        shutil.copy(PROCEDURE, procedures / "round.yaml")
        configuration.write_text(f'[server]\nlisten = "127.0.0.1:{port}"\n[auth]\nmode = "dev"\n'
                                 f'[backend]\nkind = "local"\n[backend.local]\npath = "{folder}/state.db"\n')
        command = [places.checkpoint, "serve", "--config", configuration, "--procedures", procedures]
        # Each caller is a person of their own, as the lock of an asset is between people.
        issue = [places.checkpoint, "token", "issue", "--config", configuration, "--ttl", "24h", "--sub"]
        tokens = [places.said(*issue, f"caller-{number}") for number in range(places.callers)]
        self.server = Http(command, folder, port, [{"authorization": f"Bearer {token}"} for token in tokens])

    async def call(self, tool, **arguments):
        try:
            return await self.server.call(tool, **arguments)
        except Refused as refused:
            text = str(refused)
            if "ASSET_LOCKED" in text:
                raise Busy(text) from refused
            if "TEMPORARILY_UNAVAILABLE" in text:
                raise Gone(text) from refused
            raise

    async def open(self, run, asset, key):
        view = await self.call("start_workflow", procedure_id="round", assets={"unit": asset}, idempotency_key=key)
        return view["workflow"]["id"]

    async def record(self, handle, step, value, key):
        view = await self.call("submit_step", workflow_id=handle, step_id=f"reading_{step:02}", value=value, unit="bar",
                               idempotency_key=key)
        if view["outcome"] != "recorded":
            raise Refused(view["outcome"])

    async def close(self, handle, key):
        await self.call("finish_workflow", workflow_id=handle, result="done", idempotency_key=key)

    async def read(self, handle):
        history = (await self.call("get_status", workflow_id=handle, detail="full"))["history"]
        return [(int(event["step_id"][-2:]), event["value"]) for event in history if event["kind"] == "step_recorded"]
