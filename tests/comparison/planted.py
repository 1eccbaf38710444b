"""A server that loses, doubles and misplaces readings on purpose, and counts what it did: planted.py FOLDER

Everything else is right: one durable transaction a call, a key that replays. So a comparison that counts anything else than
what was planted is wrong itself.
"""
import json
import socket
import sqlite3
import sys
from pathlib import Path

import uvicorn
from mcp.server.mcpserver import MCPServer

# Every so manieth new reading is spoilt so. A reused key is recorded, and every second time in place of the first.
LOSE, DOUBLE, MISPLACE = 7, 11, 13
KINDS = ["lost", "doubled", "misplaced", "reuse_recorded", "replaced"]

SCHEMA = """
CREATE TABLE IF NOT EXISTS readings (run TEXT NOT NULL, step INTEGER NOT NULL, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS keys (key TEXT PRIMARY KEY, payload TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS planted (what TEXT PRIMARY KEY, times INTEGER NOT NULL) STRICT;
"""

db = sqlite3.connect(Path(sys.argv[1]) / "planted.db", isolation_level=None, check_same_thread=False)
db.execute("PRAGMA journal_mode=WAL")
db.execute("PRAGMA synchronous=FULL")
db.executescript(SCHEMA)
server = MCPServer("planted", log_level="WARNING")


def plant(what):
    db.execute("INSERT INTO planted VALUES (?, 1) ON CONFLICT (what) DO UPDATE SET times = times + 1", (what,))


def write(run, step, value):
    """A new reading, spoilt if it is its turn."""
    number = db.execute("SELECT count(*) FROM keys").fetchone()[0] + 1
    if number % LOSE == 0:
        return plant("lost")
    if number % MISPLACE == 0:
        plant("misplaced")
        step += 1
    elif number % DOUBLE == 0:
        plant("doubled")
        db.execute("INSERT INTO readings VALUES (?, ?, ?)", (run, step, value))
    db.execute("INSERT INTO readings VALUES (?, ?, ?)", (run, step, value))
    return None


def reuse(run, step, value, key, first):
    """Whether this payload under a used key is recorded; the same again has the same answer and no further effect."""
    known = db.execute("SELECT payload FROM keys WHERE key = ?", (key,)).fetchone()
    if known is not None:
        return known[0] == "recorded"
    times = db.execute("SELECT count(*) FROM keys WHERE key LIKE 'reused %'").fetchone()[0] + 1
    # Only of a reading that is not spoilt already, so that no fault hides another.
    there = db.execute("SELECT step FROM readings WHERE value = ?", (first,)).fetchall()
    recorded = there == [(step,)]
    db.execute("INSERT INTO keys VALUES (?, ?)", (key, "recorded" if recorded else "refused"))
    if recorded:
        plant("reuse_recorded")
        if times % 2 == 0:
            plant("replaced")
            db.execute("DELETE FROM readings WHERE value = ?", (first,))
        db.execute("INSERT INTO readings VALUES (?, ?, ?)", (run, step, value))
    return recorded


@server.tool()
async def record(run: str, step: int, value: str, key: str) -> dict:
    """Records a reading."""
    payload = json.dumps([run, step, value])
    db.execute("BEGIN IMMEDIATE")
    try:
        known = db.execute("SELECT payload FROM keys WHERE key = ?", (key,)).fetchone()
        if known is None:
            write(run, step, value)
            db.execute("INSERT INTO keys VALUES (?, ?)", (key, payload))
        elif known[0] != payload:
            if not reuse(run, step, value, f"reused {payload}", json.loads(known[0])[2]):
                return {"ok": False, "why": "the key is used"}
        return {"ok": True}
    finally:
        db.execute("COMMIT")


@server.tool()
async def read(run: str) -> dict:
    """What is recorded of a run."""
    return {"ok": True, "readings": db.execute("SELECT step, value FROM readings WHERE run = ? ORDER BY rowid", (run,)).fetchall()}


@server.tool()
async def planted() -> dict:
    """What was done on purpose."""
    return {"ok": True, "planted": {**dict.fromkeys(KINDS, 0), **dict(db.execute("SELECT what, times FROM planted").fetchall())}}


def main():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    app = server.streamable_http_app(json_response=True, stateless_http=True)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    uvicorn.Server(uvicorn.Config(app, access_log=False, log_level="warning")).run(sockets=[listener])


main()
