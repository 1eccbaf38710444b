"""The same job on DBOS: a workflow for each call, whose id is the idempotency key, with one step in it that writes the rows.

A step may run twice after a crash, so what it wrote carries the key, and it answers the same again. (A transaction of a
datasource of DBOS would be done once by itself, but commits five times for a call and not four, and goes through SQLAlchemy:
about half as many calls a second.) SQLite, which is what DBOS runs on without a server of databases, with synchronous=FULL
as it comes and, in its favour, a write-ahead log where it leaves a rollback journal. In front there is no MCP, only as much
HTTP and JSON as the calls need, again in its favour. Run by `wf-bench`, which calls it with the same requests as the product:
dbos_peer.py FOLDER
"""
import asyncio
import json
import socket
import sqlite3
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

import uvicorn
from dbos import DBOS, SetWorkflowID

ACTOR = "user:local"
STEPS = [f"reading_{n:02}" for n in range(1, 13)]
LOW, HIGH = Decimal("1.5"), Decimal("6.0")
# Workflows at once. SQLite has one writer, and more threads only wait for it with growing pauses.
THREADS = 2

SCHEMA = """
CREATE TABLE workflows (
    id TEXT PRIMARY KEY, revision INTEGER NOT NULL, phase TEXT NOT NULL, owner TEXT NOT NULL, asset TEXT NOT NULL,
    updated_at INTEGER NOT NULL, state TEXT NOT NULL
) STRICT;
CREATE TABLE events (
    workflow_id TEXT NOT NULL REFERENCES workflows (id), seq INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (workflow_id, seq)
) STRICT;
CREATE TABLE locks (asset TEXT PRIMARY KEY, holder TEXT REFERENCES workflows (id)) STRICT;
"""


def connect(path: Path) -> sqlite3.Connection:
    # Transactions are begun by hand; statements are prepared once and kept.
    db = sqlite3.connect(path, isolation_level=None, cached_statements=256, check_same_thread=False)
    # Stays in the file, also for whoever opens it later.
    db.execute("PRAGMA journal_mode=WAL")
    return db


def durability(db: sqlite3.Connection) -> str:
    (journal,), (synchronous,) = db.execute("PRAGMA journal_mode").fetchone(), db.execute("PRAGMA synchronous").fetchone()
    return f"journal_mode={journal} synchronous={synchronous}"


folder = Path(sys.argv[1])
connect(folder / "dbos.db").close()
dbos = DBOS(config={
    "name": "peer",
    "system_database_url": f"sqlite:///{folder / 'dbos.db'}",
    "enable_otlp": False,
    "log_level": "WARNING",
})
db = connect(folder / "work.db")
db.executescript(SCHEMA)
# One connection for the rows: a second writer would only wait.
writing = threading.Lock()


class Refused(Exception):
    """Nothing is written; the answer says why."""


def load(workflow_id: str) -> tuple[int, str, dict[str, Any]]:
    row = db.execute("SELECT revision, phase, asset, state FROM workflows WHERE id = ? AND owner = ?",
                     (workflow_id, ACTOR)).fetchone()
    if row is None:
        raise Refused("NOT_FOUND")
    revision, phase, asset, state = row
    if phase != "RUNNING":
        raise Refused("INVALID_TRANSITION")
    held = db.execute("SELECT holder FROM locks WHERE asset = ?", (asset,)).fetchone()
    if held is None or held[0] != workflow_id:
        raise Refused("LOCK_LOST")
    return revision, asset, json.loads(state)


def record(workflow_id: str, revision: int, state: dict[str, Any], phase: str, now: int, event: dict[str, Any]) -> None:
    db.execute("INSERT INTO events VALUES (?, ?, ?)",
               (workflow_id, revision, json.dumps({"seq": revision, "at": now, "by": ACTOR, **event}, separators=(",", ":"))))
    db.execute("UPDATE workflows SET revision = ?, phase = ?, updated_at = ?, state = ? WHERE id = ?",
               (revision, phase, now, json.dumps(state, separators=(",", ":")), workflow_id))


def answer(outcome: str, speech: str, workflow_id: str, asset: str, revision: int, state: dict[str, Any]) -> dict[str, Any]:
    following = next((step for step in STEPS if step not in state["steps"]), None)
    step = following and {"id": following, "kind": "number", "prompt": f"What is {following}?", "unit": "bar",
                          "min": str(LOW), "max": str(HIGH)}
    return {"ok": True, "outcome": outcome, "duplicate": False, "speech": speech, "step": step,
            "next_idempotency_key": f"nk_{uuid.uuid4().hex}",
            "workflow": {"id": workflow_id, "revision": revision, "assets": [{"role": "unit", "id": asset}],
                         "owner": ACTOR, "progress": {"required": len(STEPS), "settled": len(state["steps"])}}}


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def start_workflow(call: dict[str, Any]) -> dict[str, Any]:
    # The id is that of the call, so that a second run of the step finds what the first one did.
    now, asset, workflow_id = now_ms(), call["assets"]["unit"], str(uuid.uuid5(uuid.NAMESPACE_OID, call["idempotency_key"]))
    state: dict[str, Any] = {"procedure": call["procedure_id"], "started_at": now, "steps": {}}
    made = db.execute("INSERT INTO workflows VALUES (?, 1, 'RUNNING', ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
                      (workflow_id, ACTOR, asset, now, json.dumps(state))).rowcount
    if made == 1:
        taken = db.execute("INSERT INTO locks VALUES (?, ?) ON CONFLICT (asset) DO UPDATE SET holder = excluded.holder "
                           "WHERE holder IS NULL", (asset, workflow_id)).rowcount
        if taken != 1:
            raise Refused("ASSET_LOCKED")
        db.execute("INSERT INTO events VALUES (?, 1, ?)", (workflow_id, json.dumps({"kind": "workflow_started", "at": now})))
    return answer("started", f"{asset} is started.", workflow_id, asset, 1, state)


def submit_step(call: dict[str, Any]) -> dict[str, Any]:
    now, workflow_id, step_id, value = now_ms(), call["workflow_id"], call["step_id"], call["value"]
    revision, asset, state = load(workflow_id)
    key = call["idempotency_key"]
    if step_id in state["steps"] and state["steps"][step_id]["key"] == key:
        return answer("recorded", f"Recorded {value} bar.", workflow_id, asset, revision, state)
    if step_id not in STEPS or step_id in state["steps"]:
        raise Refused("STEP_NOT_OPEN")
    if not LOW <= Decimal(value) <= HIGH:
        raise Refused("OUT_OF_RANGE")
    state["steps"][step_id] = {"value": value, "unit": "bar", "at": now, "by": ACTOR, "key": key}
    event = {"kind": "step_recorded", "step_id": step_id, "value": value, "unit": "bar", "key": key}
    record(workflow_id, revision + 1, state, "RUNNING", now, event)
    return answer("recorded", f"Recorded {value} bar.", workflow_id, asset, revision + 1, state)


def finish_workflow(call: dict[str, Any]) -> dict[str, Any]:
    workflow_id = call["workflow_id"]
    revision, asset, state = load(workflow_id)
    state["result"] = call["result"]
    event = {"kind": "workflow_completed", "result": call["result"]}
    record(workflow_id, revision + 1, state, "COMPLETED", now_ms(), event)
    db.execute("UPDATE locks SET holder = NULL WHERE asset = ?", (asset,))
    return answer("finished", f"{asset} is finished.", workflow_id, asset, revision + 1, state)


TOOLS = {"start_workflow": start_workflow, "submit_step": submit_step, "finish_workflow": finish_workflow}


@DBOS.step()
def write(tool: str, call: dict[str, Any]) -> dict[str, Any]:
    """Runs the tool in one durable transaction."""
    with writing:
        db.execute("BEGIN IMMEDIATE")
        try:
            result = TOOLS[tool](call)
            db.execute("COMMIT")
            return result
        except Refused as refused:
            db.execute("ROLLBACK")
            return {"ok": False, "outcome": "refused", "duplicate": False, "speech": str(refused)}
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise


@DBOS.workflow()
def once(tool: str, call: dict[str, Any]) -> dict[str, Any]:
    return write(tool, call)


def durably(tool: str, call: dict[str, Any]) -> bytes:
    with SetWorkflowID(call["idempotency_key"]):
        result = once(tool, call)
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"structuredContent": result}}, separators=(",", ":")).encode()


threads = ThreadPoolExecutor(THREADS)


async def app(scope: dict[str, Any], receive, send) -> None:
    """ASGI: the calls and nothing else."""
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    call = json.loads(body)["params"]
    said = await asyncio.get_running_loop().run_in_executor(threads, durably, call["name"], call["arguments"])
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(said)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": said})


def main() -> None:
    DBOS.launch()
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    config = uvicorn.Config(app, loop="uvloop", http="httptools", access_log=False, log_level="warning", lifespan="off")
    with dbos._sys_db.engine.connect() as own:
        theirs = durability(own.connection.dbapi_connection)
    print(f"settings: dbos {version('dbos')}, Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}, its own database "
          f"{theirs}, that of the rows {durability(db)}, {THREADS} threads", flush=True)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    uvicorn.Server(config).run(sockets=[listener])


main()
