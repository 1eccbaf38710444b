"""What a Python author would write instead of Checkpoint: the official MCP SDK and sqlite3.

The same job for one call, no more: the key is looked up, the workflow and its lock are checked, the value is judged, and
the workflow, its event and the stored answer are written in one transaction that is on the disk before the answer goes
out (write-ahead log, synchronous=FULL). Stateless Streamable HTTP with JSON answers, uvloop and httptools, no access log.
Run by `wf-bench`, which calls it with the same requests as the product: peer.py FOLDER
"""
import hashlib
import json
import socket
import sqlite3
import sys
import time
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer

ACTOR = "user:local"
STEPS = [f"reading_{n:02}" for n in range(1, 13)]
LOW, HIGH = Decimal("1.5"), Decimal("6.0")

SCHEMA = """
CREATE TABLE IF NOT EXISTS workflows (
    id TEXT PRIMARY KEY, revision INTEGER NOT NULL, phase TEXT NOT NULL, owner TEXT NOT NULL, asset TEXT NOT NULL,
    updated_at INTEGER NOT NULL, state TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS events (
    workflow_id TEXT NOT NULL REFERENCES workflows (id), seq INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (workflow_id, seq)
) STRICT;
CREATE TABLE IF NOT EXISTS ledger (
    actor TEXT NOT NULL, key TEXT NOT NULL, fingerprint TEXT NOT NULL, created_at INTEGER NOT NULL,
    result TEXT NOT NULL, PRIMARY KEY (actor, key)
) STRICT;
CREATE TABLE IF NOT EXISTS locks (asset TEXT PRIMARY KEY, holder TEXT REFERENCES workflows (id)) STRICT;
"""


def connect(path: Path) -> sqlite3.Connection:
    # Transactions are begun by hand; statements are prepared once and kept.
    db = sqlite3.connect(path, isolation_level=None, cached_statements=256, check_same_thread=False)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("PRAGMA foreign_keys=ON")
    db.execute("PRAGMA busy_timeout=2000")
    db.execute("PRAGMA cache_size=-8192")
    db.executescript(SCHEMA)
    return db


db = connect(Path(sys.argv[1]) / "peer.db")
server = MCPServer("peer", log_level="WARNING")


class Refused(Exception):
    """Nothing is written; the answer says why."""


def once(operation: str, arguments: dict[str, Any], key: str, change) -> dict[str, Any]:
    """Runs `change` in one durable transaction, or answers what it answered the first time."""
    canonical = json.dumps([operation, arguments], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    fingerprint = hashlib.sha256(canonical.encode()).hexdigest()
    db.execute("BEGIN IMMEDIATE")
    try:
        row = db.execute("SELECT fingerprint, result FROM ledger WHERE actor = ? AND key = ?", (ACTOR, key)).fetchone()
        if row is not None:
            if row[0] != fingerprint:
                raise Refused("IDEMPOTENCY_CONFLICT")
            db.execute("ROLLBACK")
            return {**json.loads(row[1]), "duplicate": True}
        now = time.time_ns() // 1_000_000
        result = change(now)
        db.execute("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)",
                   (ACTOR, key, fingerprint, now, json.dumps(result, separators=(",", ":"))))
        db.execute("COMMIT")
        return result
    except Refused as refused:
        db.execute("ROLLBACK")
        return {"ok": False, "outcome": "refused", "duplicate": False, "speech": str(refused)}
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


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


@server.tool()
async def start_workflow(procedure_id: str, assets: dict[str, str], idempotency_key: str) -> dict[str, Any]:
    """Starts a workflow on its asset."""
    def change(now: int) -> dict[str, Any]:
        asset, workflow_id = assets["unit"], str(uuid.uuid4())
        state: dict[str, Any] = {"procedure": procedure_id, "started_at": now, "steps": {}}
        db.execute("INSERT INTO workflows VALUES (?, 1, 'RUNNING', ?, ?, ?, ?)",
                   (workflow_id, ACTOR, asset, now, json.dumps(state)))
        taken = db.execute("INSERT INTO locks VALUES (?, ?) ON CONFLICT (asset) DO UPDATE SET holder = excluded.holder "
                           "WHERE holder IS NULL", (asset, workflow_id)).rowcount
        if taken != 1:
            raise Refused("ASSET_LOCKED")
        db.execute("INSERT INTO events VALUES (?, 1, ?)", (workflow_id, json.dumps({"kind": "workflow_started", "at": now})))
        return answer("started", f"{asset} is started.", workflow_id, asset, 1, state)

    arguments = {"procedure_id": procedure_id, "assets": assets}
    return once("start_workflow", arguments, idempotency_key, change)


@server.tool()
async def submit_step(workflow_id: str, step_id: str, value: str, idempotency_key: str) -> dict[str, Any]:
    """Records the value of a step."""
    def change(now: int) -> dict[str, Any]:
        revision, asset, state = load(workflow_id)
        if step_id not in STEPS or step_id in state["steps"]:
            raise Refused("STEP_NOT_OPEN")
        if not LOW <= Decimal(value) <= HIGH:
            raise Refused("OUT_OF_RANGE")
        state["steps"][step_id] = {"value": value, "unit": "bar", "at": now, "by": ACTOR, "key": idempotency_key}
        event = {"kind": "step_recorded", "step_id": step_id, "value": value, "unit": "bar", "key": idempotency_key}
        record(workflow_id, revision + 1, state, "RUNNING", now, event)
        return answer("recorded", f"Recorded {value} bar.", workflow_id, asset, revision + 1, state)

    arguments = {"workflow_id": workflow_id, "step_id": step_id, "value": value}
    return once("submit_step", arguments, idempotency_key, change)


@server.tool()
async def finish_workflow(workflow_id: str, result: str, idempotency_key: str) -> dict[str, Any]:
    """Finishes a workflow and frees its asset."""
    def change(now: int) -> dict[str, Any]:
        revision, asset, state = load(workflow_id)
        state["result"] = result
        record(workflow_id, revision + 1, state, "COMPLETED", now, {"kind": "workflow_completed", "result": result})
        db.execute("UPDATE locks SET holder = NULL WHERE asset = ?", (asset,))
        return answer("finished", f"{asset} is finished.", workflow_id, asset, revision + 1, state)

    return once("finish_workflow", {"workflow_id": workflow_id, "result": result}, idempotency_key, change)


def main() -> None:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    app = server.streamable_http_app(json_response=True, stateless_http=True)
    config = uvicorn.Config(app, loop="uvloop", http="httptools", access_log=False, log_level="warning", lifespan="on")
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    uvicorn.Server(config).run(sockets=[listener])


main()
