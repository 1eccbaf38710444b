"""The job on DBOS, as its documents say: a workflow for each call, whose id is the caller's key, and one transaction of a data
source in it, so that the reading and DBOS's mark that the step is done are one commit. Run by peers/dbos.py: FOLDER PORT

The lock of the asset and the rule of one reading a step are two constraints of this program's own tables.
"""
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import sqlalchemy as sa
from dbos import DBOS, SetWorkflowID, SQLAlchemyDatasource

folder, port = Path(sys.argv[1]), int(sys.argv[2])
DBOS(config={"name": "readings", "system_database_url": f"sqlite:///{folder}/system.sqlite", "run_admin_server": False, "log_level": "WARNING"})
source = SQLAlchemyDatasource.create(f"sqlite:///{folder}/readings.sqlite")

with source.engine.begin() as connection:
    connection.execute(sa.text("CREATE TABLE IF NOT EXISTS readings (run TEXT, step INTEGER, value TEXT, PRIMARY KEY (run, step))"))
    connection.execute(sa.text("CREATE TABLE IF NOT EXISTS locks (asset TEXT PRIMARY KEY, run TEXT)"))


def execute(statement, **values):
    return source.sql_session().execute(sa.text(statement), values)


@source.transaction()
def take(asset, run):
    taken = execute("INSERT INTO locks VALUES (:asset, :run) ON CONFLICT DO NOTHING", asset=asset, run=run).rowcount
    return {"ok": taken == 1, "why": "locked"}


@source.transaction()
def write(run, step, value):
    written = execute("INSERT INTO readings VALUES (:run, :step, :value) ON CONFLICT DO NOTHING", run=run, step=step, value=value).rowcount
    return {"ok": written == 1, "why": "the step has a reading"}


@source.transaction()
def give(asset, run):
    execute("DELETE FROM locks WHERE asset = :asset AND run = :run", asset=asset, run=run)
    return {"ok": True}


@DBOS.workflow()
def start(asset, run):
    return take(asset, run)


@DBOS.workflow()
def record(run, step, value):
    return write(run, step, value)


@DBOS.workflow()
def finish(asset, run):
    return give(asset, run)


WORKFLOWS = {"/start": start, "/record": record, "/finish": finish}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/read":
            with source.engine.connect() as connection:
                rows = connection.execute(sa.text("SELECT step, value FROM readings WHERE run = :run ORDER BY step"), body)
                answer = [list(row) for row in rows]
        else:
            with SetWorkflowID(body.pop("key")):
                answer = WORKFLOWS[self.path](**body)
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


DBOS.launch()
ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
