"""Durable engines: they run a program of their user, so the job is a small one of services/, and the callers speak to it."""
import shutil

from peers.peer import Peer
from places import HERE
from servers import Busy, Gone, Plain, Refused, exchange, free_port

SERVICES = HERE / "services"


class Engine(Peer):
    """What both adapters share: three calls with a key, which answer {ok, why}, and one that reads."""

    async def told(self, answer):
        if answer["ok"]:
            return
        raise (Busy if answer["why"] == "locked" else Refused)(answer["why"])


class Dbos(Engine):
    name, licence = "DBOS", "MIT"
    purpose = "a library that makes the steps of your Python program durable in your database; no server of procedures, no MCP"
    mapping = "an own program of 90 lines: a reading is a workflow with a transaction in it, the workflow's id is the key; state in SQLite"
    key = "workflow id"

    def __init__(self, folder, places):
        super().__init__(folder, places)
        self.version = places.pinned("dbos", "dbos")
        # Its defaults for newer versions of Python need SQLite 3.42, which not every Python brings.
        port = free_port()
        self.server = Plain([places.environment("dbos", ("3.11",)) / "python", SERVICES / "dbos_readings.py", folder, port], folder, port)

    async def call(self, path, **body):
        status, answer = await self.server.call(path, body)
        if status != 200:
            raise Gone(f"HTTP {status}: {answer}")
        return answer

    async def open(self, run, asset, key):
        await self.told(await self.call("/start", asset=asset, run=run, key=key))
        return asset, run

    async def record(self, handle, step, value, key):
        await self.told(await self.call("/record", run=handle[1], step=step, value=value, key=key))

    async def close(self, handle, key):
        await self.told(await self.call("/finish", asset=handle[0], run=handle[1], key=key))

    async def read(self, handle):
        return [(step, value) for step, value in await self.call("/read", run=handle[1])]


class RestateServer(Plain):
    """Restate with the program beside it, in one process group; the program is registered after each start."""

    def __init__(self, command, folder, ports, environment):
        super().__init__(command, folder, ports["ingress"], environment)
        self.ports = ports


    def answers(self):
        """Ready when the ingress knows the program: registering needs the administration and the program to be up."""
        try:
            body = {"uri": f"http://127.0.0.1:{self.ports['program']}", "force": True}
            status, _ = exchange(self.ports["admin"], "POST", "/deployments", body)
            return status in (200, 201) and super().answers() and exchange(self.port, "POST", "/asset/none/read", {"run": "none"})[0] == 200
        except OSError:
            return False


class Restate(Engine):
    name, licence = "Restate", "BUSL-1.1 (server), MIT (SDK)"
    purpose = "a server that runs the handlers of your program durably; no server of procedures, no MCP"
    mapping = "an own program of 40 lines: a virtual object for each asset, a reading is a call of its handler `record` with an idempotency key"
    key = "`idempotency-key` header"

    def __init__(self, folder, places):
        super().__init__(folder, places)
        self.version = places.node_version("@restatedev/restate-server")
        home = places.node()
        # Node looks for packages beside the script.
        shutil.copy(SERVICES / "restate_readings.mjs", home)
        ports = {name: free_port() for name in ("ingress", "admin", "node", "program")}
        environment = {
            "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ports['ingress']}", "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{ports['admin']}",
            "RESTATE_BIND_ADDRESS": f"127.0.0.1:{ports['node']}", "RESTATE_BASE_DIR": str(folder / "state"),
            "RESTATE_LISTEN_MODE": "tcp", "RESTATE_NODE_NAME": "comparison", "DO_NOT_TRACK": "1",
        }
        both = '"$0" "$1" "$2" & exec "$3" --no-logo'
        server = home / "node_modules" / ".bin" / "restate-server"
        command = ["/bin/sh", "-c", both, places.node_program(), home / "restate_readings.mjs", ports["program"], server]
        self.server = RestateServer(command, folder, ports, environment)

    async def call(self, asset, handler, body, key=None):
        status, answer = await self.server.call(f"/asset/{asset}/{handler}", body, {"idempotency-key": key} if key else None)
        if status != 200:
            raise Gone(f"HTTP {status}: {answer}")
        return answer

    async def open(self, run, asset, key):
        await self.told(await self.call(asset, "start", {"run": run}, key))
        return asset, run

    async def record(self, handle, step, value, key):
        await self.told(await self.call(handle[0], "record", {"run": handle[1], "step": step, "value": value}, key))

    async def close(self, handle, key):
        await self.told(await self.call(handle[0], "finish", {"run": handle[1]}, key))

    async def read(self, handle):
        return [(step, value) for step, value in await self.call(handle[0], "read", {"run": handle[1]})]
