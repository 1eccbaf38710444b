"""Bad files, flags and databases: the binary refuses to start with a message that helps, or lives through the fault.

Nothing that was there is changed by a refusal, nothing acknowledged is lost by a fault. Cases that need a mount run as
root and are reported as skipped elsewhere.
"""
import contextlib
import os
import re
import shutil
import socket
import sqlite3
import subprocess

import pump
from client import Client, expect, expect_error, new_key, step_arguments
from harness import NotStarted, Server, Skip, case, cli, free_port, fresh_folder, run_cases, until


def refuses(server, *codes, says=()):
    """`serve` ends by itself with one of the exit codes and its last words contain each of `says` (regular expressions)."""
    try:
        server.start(wait=20)
    except NotStarted as ended:
        assert ended.code in codes, f"exit code {ended.code}, not {codes}: {ended.log[-1500:]}"
        assert "panicked" not in ended.log, ended.log[-1500:]
        for word in says:
            assert re.search(word, ended.log, re.I), f"the message does not say {word}: {ended.log[-1500:]}"
        return
    server.kill9()
    raise AssertionError(f"it started: {server.log_text()[-800:]}")


def filled(server):
    """Some work in a server's store, ended politely; returns the last answer of the started workflow."""
    with server:
        return pump.at_number(Client(server))


# Flags and configuration.


@case("configuration: an unknown key, broken TOML, a wrong type and a missing file are usage errors")
def configuration():
    refuses(Server(server="colour = 1"), 2, says=["colour"])
    refuses(Server(config="[surver]\nx = 1"), 2, says=["surver"])
    refuses(Server(server="max_in_flight = \"many\""), 2, says=["max_in_flight"])
    refuses(Server(server="request_timeout = \"soon\""), 2, says=["request_timeout"])
    refuses(Server(server="listen ="), 2, says=["checkpoint.toml"])
    code, text = cli("serve", "--config", os.path.join(fresh_folder(), "none.toml"))
    assert code in (1, 2) and "none.toml" in text, (code, text)


@case("flags: unknown commands, flags and a broken address are usage errors")
def flags():
    for arguments in (["serve", "--colour"], ["no-such-command"], ["serve", "--listen", "nowhere"], ["workflow", "show"], ["locks", "release", "PUMP-1"]):
        code, text = cli(*arguments, cwd=fresh_folder())
        assert code == 2 and text.strip(), (arguments, code, text)


@case("an address beyond loopback without authentication is refused with advice")
def exposed():
    for address in ("0.0.0.0", "[::]"):
        port = free_port()
        server = Server(arguments=["--listen", f"{address}:{port}"])
        refuses(server, 1, 2, says=[r"auth", r"loopback|127\.0\.0\.1"])
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0, "it listens all the same"


@case("a port in use is refused by its address")
def port_in_use():
    with Server() as first:
        second = Server()
        with open(second.config, encoding="utf-8") as file:
            text = file.read()
        with open(second.config, "w", encoding="utf-8") as file:
            file.write(text.replace(str(second.port), str(first.port)))
        code, text = cli("serve", "--config", second.config, cwd=second.folder, timeout=30)
        assert code in (1, 3) and str(first.port) in text, (code, text)
        assert first.request("GET", "/readyz")[0] == 200


# Procedure files.

BROKEN = {
    "unknown key": ("title: Test", "title: Test\ncolour: red", r"colour"),
    "missing title": ("title: Test\n", "", r"title"),
    "unknown kind": ("kind: confirm", "kind: guess", r"guess"),
    "twice the same step": ("- id: second", "- id: first", r"first"),
    "not YAML": ("version: 1", "version: [1", r""),
    "not supported yet or no such unit": ("unit: bar", "unit: furlong-per-hour", r"furlong"),
    "bad expression": ("kind: confirm", "kind: confirm\n    when: steps.nowhere.value >", r"when|expression|nowhere"),
    "range upside down": ("accept: [1, 6]", "accept: [6, 1]", r"empty range"),
}
GOOD_FILE = """schema: checkpoint/procedure/v1
id: test-procedure
version: 1
title: Test
assets:
  - role: thing
    say: thing
    id: { prefix: T-, digits: { max: 6, leading_zeros: drop } }
    example: T-1
steps:
  - id: first
    kind: number
    prompt: What is the pressure?
    unit: bar
    decimals: 1
    range: { instrument: [0, 10], accept: [1, 6] }
    out_of_range: { action: warn, code: PRESSURE_UNUSUAL }
  - id: second
    kind: confirm
    prompt: Confirm it is closed.
results:
  - { id: passed, say: passed }
"""


@case("a broken procedure file is refused with file, line and column; the corrected one passes")
def procedure_files():
    folder = fresh_folder()
    path = os.path.join(folder, "test.yaml")

    def written(text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return cli("procedure", "check", path, cwd=folder)

    code, text = written(GOOD_FILE)
    assert code == 0, (code, text)
    for name, (old, new, word) in BROKEN.items():
        assert old in GOOD_FILE, name
        code, text = written(GOOD_FILE.replace(old, new, 1))
        assert code in (1, 2), f"{name}: exit code {code}: {text}"
        assert re.search(r"test\.yaml:\d+:\d+", text), f"{name}: no file:line:column in {text}"
        assert re.search(word, text), f"{name}: {word} is not named in {text}"
    refuses(Server(arguments=["--procedures", folder]), 1, 2, says=[r"test\.yaml:\d+:\d+"])
    code, text = cli("procedure", "check", os.path.join(folder, "absent.yaml"))
    assert code in (1, 2) and "absent.yaml" in text, (code, text)


# Databases.


def tables(path):
    with contextlib.closing(sqlite3.connect(path)) as base:
        names = [row[0] for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
        return {name: [column[1] for column in base.execute(f'PRAGMA table_info("{name}")')] for name in names}


@case("database: a folder or a file that is no database is refused and left as it is")
def no_database():
    folder = fresh_folder()
    refuses(Server(database=folder), 1, 3, says=[re.escape(folder)])
    for content in (b"this is no database, it is a shopping list\n" * 200, b"SQLite format 3\0" + b"\xff" * 8176):
        path = os.path.join(fresh_folder(), "garbage.db")
        with open(path, "wb") as file:
            file.write(content)
        refuses(Server(database=path), 1, 3, 4, says=[re.escape(path)])
        with open(path, "rb") as file:
            assert file.read() == content, "the refusal changed the file"
    refuses(Server(database=os.path.join(folder, "no", "such", "folder", "x.db")), 1, 3, says=["no/such/folder"])


@case("database: a schema newer than the binary is refused and says so")
def newer_schema():
    server = Server()
    filled(server)
    with contextlib.closing(sqlite3.connect(server.database)) as base, base:
        if "_sqlx_migrations" in tables(server.database):
            columns = tables(server.database)["_sqlx_migrations"]
            chosen = ", ".join("version + 1000000" if column == "version" else f'"{column}"' for column in columns)
            base.execute(f"INSERT INTO _sqlx_migrations SELECT {chosen} FROM _sqlx_migrations ORDER BY version DESC LIMIT 1")
        version = base.execute("PRAGMA user_version").fetchone()[0]
        base.execute(f"PRAGMA user_version = {version + 1_000_000 if version else 0}")
    refuses(server, 1, 3, says=[r"newer|version|schema", re.escape(server.database)])
    code, text = cli("workflow", "list", "--config", server.config)
    assert code in (1, 3), (code, text)


@case("database: a tampered event is found by verify (exit 4), an intact one passes")
def tampered():
    server = Server()
    filled(server)
    server.verify()
    event_tables = {name: columns for name, columns in tables(server.database).items() if "event" in name and "seq" in columns}
    assert event_tables, f"no table of events: {tables(server.database)}"
    forged = 0
    with contextlib.closing(sqlite3.connect(server.database)) as base, base:
        for (trigger,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            base.execute(f'DROP TRIGGER "{trigger}"')
        for name, columns in event_tables.items():
            for column in columns:
                for (cell,) in base.execute(f'SELECT "{column}" FROM "{name}" WHERE seq = 1').fetchall():
                    raw = cell.encode() if isinstance(cell, str) else cell
                    if isinstance(raw, bytes) and b"WO 1" in raw:
                        other = raw.replace(b"WO 1", b"WO 9")
                        base.execute(f'UPDATE "{name}" SET "{column}" = ? WHERE "{column}" = ?', (other.decode() if isinstance(cell, str) else other, cell))
                        forged += 1
    assert forged, "no event holds the input that is to be forged"
    code, text = cli("workflow", "verify", "--config", server.config)
    assert code == 4, f"exit code {code}: {text[-1500:]}"


@contextlib.contextmanager
def tmpfs(size):
    """A small file system of its own; needs root."""
    folder = fresh_folder()
    if os.geteuid() != 0 or not shutil.which("mount"):
        raise Skip("needs root to mount a tmpfs")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "checkpoint", folder], capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        raise Skip(f"cannot mount a tmpfs here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@case("database: a read-only file system is refused and says so")
def read_only():
    with tmpfs("16m") as folder:
        server = Server(database=os.path.join(folder, "checkpoint.db"))
        filled(server)
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        refuses(server, 1, 3, says=[r"read.?only|permission|writ", re.escape(server.database)])
        subprocess.run(["mount", "-o", "remount,rw", folder], check=True)
        with server:
            assert Client(server).call("get_status")["workflow"]["state"] == "RUNNING"
            server.verify()


@case("database: a full disk refuses writes, keeps what was acknowledged, and works again with space")
def full_disk():
    with tmpfs("16m") as folder:
        server = Server(database=os.path.join(folder, "checkpoint.db")).start()
        caller = Client(server)
        sent = [("start_workflow", pump.start_arguments(key=new_key()))]
        view = expect(caller.call("start_workflow", **sent[0][1]), "started")
        ballast = fill(folder)
        refused, number = None, 0
        while refused is None and number < 20_000:
            number += 1
            arguments = {"workflow_id": view["workflow"]["id"], "summary": "n" * 900, "severity": "note", "idempotency_key": new_key()}
            out = caller.call("report_problem", **arguments)
            if out["ok"]:
                sent.append(("report_problem", arguments))
            else:
                expect_error(out, "BACKEND_UNAVAILABLE")
                refused = arguments
        assert refused, "the disk never filled up"
        again = step_arguments(view, "yes", new_key())
        expect_error(caller.call("submit_step", **again), "BACKEND_UNAVAILABLE")
        assert server.alive() and caller.call("get_status")["workflow"]["state"] == "RUNNING", "reading goes on"
        os.remove(ballast)
        until(lambda: caller.call("report_problem", **refused)["ok"], what="the same call with space again")
        expect(caller.call("submit_step", **again), "recorded")
        for tool, arguments in sent:
            assert caller.call(tool, **arguments)["duplicate"], f"an acknowledged call is lost: {arguments}"
        server.verify()
        assert server.stop() == 0


def fill(folder):
    """Takes the rest of the space; returns the file that holds it."""
    path = os.path.join(folder, "ballast")
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 65536)
        except OSError:
            return path


if __name__ == "__main__":
    run_cases()
