"""What a server reads again while it runs: procedures (SIGHUP), signing keys and secrets of webhooks (whenever they change).
A broken or half written file is told in log and metrics, and what was there before stays. One server for all cases.
"""
import base64
import os
import re
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from client import Client, expect, new_key, step_arguments, too_high, good_value
from harness import Server, case, fresh_folder, run_cases, until
from standardwebhooks.webhooks import Webhook

DOOR = """schema: checkpoint/procedure/v1
id: door-check
version: {version}
title: Door check
steps:
  - id: closes
    kind: confirm
    prompt: {prompt}
"""


def secret():
    return "whsec_" + base64.b64encode(os.urandom(32)).decode()


def key():
    return base64.b64encode(os.urandom(32)).decode()


class Receiver:
    """Keeps the headers and bodies of what it is sent."""

    def __init__(self):
        self.got = got = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                got.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook"


class Place:
    """The server, and the files that it reads."""

    def __init__(self):
        self.folder = fresh_folder()
        self.procedures = os.path.join(self.folder, "procedures")
        os.mkdir(self.procedures)
        self.receiver = Receiver()
        self.keys, self.secrets = key(), secret()
        self.write("procedures/door.yaml", DOOR.format(version=1, prompt="Does the door close?"))
        self.write("signing.keys", self.keys)
        self.write("hook.secret", self.secrets)
        self.server = Server(
            server='secret_file = "signing.keys"', folder=self.folder,
            config=f'[procedures]\ndir = "procedures"\n[telemetry]\nformat = "json"\n'
                   f'[[notifications.route]]\nto = "maintenance-lead"\nsink = "webhook"\nurl = "{self.receiver.url}"\n'
                   f'secret_file = "hook.secret"\nallow_private = true\n').start()
        self.client = Client(self.server)

    def write(self, name, text):
        """In one step, as documented: nobody reads half of it."""
        path = os.path.join(self.folder, name)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text + "\n")
        os.rename(path + ".new", path)

    def logged(self, text):
        """Lines of the log with this text."""
        return [line for line in self.server.log_text().splitlines() if text in line]

    def again(self, done, text):
        """Does something, and waits for one more line with this text."""
        before = len(self.logged(text))
        done()
        until(lambda: len(self.logged(text)) > before, what=f"a line with {text!r}")

    def hangup(self):
        self.server.process.send_signal(signal.SIGHUP)

    def change(self, name, text):
        """Writes a file and says so, which is faster than to wait for it to be noticed."""
        self.write(name, text)
        self.hangup()

    def metric(self, name, what):
        status, _, body = self.server.request("GET", "/metrics")
        assert status == 200, status
        found = re.findall(rf'^{name}\{{([^}}]*)\}} ([0-9.]+)$', body.decode(), re.MULTILINE)
        values = [float(value) for labels, value in found if f'what="{what}"' in labels]
        assert values, f"no {name} of {what}"
        return sum(values)

    def startable(self):
        out = self.client.call("find_work")
        return {candidate["procedure_id"] for candidate in out["candidates"] if "needs" in candidate}

    def started(self, procedure, **arguments):
        out = self.client.call("start_workflow", procedure_id=procedure, idempotency_key=new_key(), **arguments)
        return expect(out, "started")

    def pump(self, number):
        return self.started("pump-inspection", assets={"pump": f"PUMP-{number}"}, inputs={"work_order": f"WO-{number}"})

    def told(self, number):
        """Stops the work on a pump; the message that comes of it."""
        view = self.pump(number)
        before = len(self.receiver.got)
        self.client.call("report_problem", workflow_id=view["workflow"]["id"], summary="it hums", severity="high", idempotency_key=new_key())
        until(lambda: len(self.receiver.got) > before, what="a message")
        return self.receiver.got[-1]


_place = []


def place():
    if not _place:
        _place.append(Place())
    return _place[0]


@case("broken procedure files are told with every line and column, and the old set stays")
def broken_procedures():
    here = place()
    assert "door-check" in here.startable()
    here.write("procedures/door.yaml", DOOR.format(version=2, prompt="x").replace("confirm", "confrim").replace("title", "titel"))
    here.write("procedures/other.yaml", "schema: checkpoint/procedure/v1\nid: [")
    here.again(here.hangup, "to do: mend the files")
    told = "\n".join(here.logged("procedures not reloaded"))
    for at in ("door.yaml:4:1", "door.yaml:7:11", "other.yaml:2:"):
        assert at in told, f"{at} is not told: {told}"
    assert "door-check" in here.startable()
    assert here.started("door-check")["workflow"]["procedure"]["version"] == 1
    assert here.metric("checkpoint_reload_refused", "procedures") == 1
    assert here.server.request("GET", "/readyz")[0] == 200
    os.remove(os.path.join(here.procedures, "other.yaml"))
    # Whole again, but changed under its version.
    here.write("procedures/door.yaml", DOOR.format(version=1, prompt="Does it close by itself?"))
    here.again(here.hangup, "door-check version 1 changed")
    assert here.metric("checkpoint_reload_refused", "procedures") == 1


@case("a new version counts for new work, open work keeps its own")
def versions():
    here = place()
    old = here.started("door-check")
    assert old["step"]["prompt"] == "Does the door close?", old["step"]
    here.write("procedures/door.yaml", DOOR.format(version=2, prompt="Does it close by itself?"))
    here.again(here.hangup, "procedures reloaded")
    assert here.metric("checkpoint_reload_refused", "procedures") == 0
    new = here.started("door-check")
    assert new["step"]["prompt"] == "Does it close by itself?" and new["workflow"]["procedure"]["version"] == 2, new
    again = here.client.call("get_status", workflow_id=old["workflow"]["id"])
    assert again["step"]["prompt"] == "Does the door close?" and again["workflow"]["procedure"]["version"] == 1, again
    expect(here.client.call("submit_step", idempotency_key=new_key(), **step_arguments(old, "yes")), "recorded")


@case("a webhook's secret is replaced with both signatures in between; a half written file changes nothing")
def webhook_secret():
    here = place()
    old, new = here.secrets, secret()
    replaced, kept = "the secret of a webhook was replaced", "the secret of a webhook was not replaced"

    def signed(number, *by):
        headers, body = here.told(number)
        assert len(headers["webhook-signature"].split()) == len(by), headers
        for one in by:
            Webhook(one).verify(body, headers)

    signed(301, old)
    here.again(lambda: here.write("hook.secret", f"{new}\n{old}"), replaced)
    signed(302, new, old)
    here.again(lambda: here.change("hook.secret", new[:20]), kept)
    assert here.metric("checkpoint_reload_refused", "secret of a webhook") == 1
    signed(303, new, old)
    here.again(lambda: here.change("hook.secret", new), replaced)
    assert here.metric("checkpoint_reload_refused", "secret of a webhook") == 0
    signed(304, new)
    assert not any(one[6:] in here.server.log_text() for one in (old, new, new[:20])), "a secret is in the log"


@case("signing keys are replaced without asking anybody again, and a key that is taken out counts no more")
def signing_keys():
    here = place()
    old, new = here.keys, key()
    replaced, kept = "the file of signing keys was replaced", "the file of signing keys was not replaced"

    def asked(number):
        view = here.pump(number)
        while view["step"]["kind"] != "number" or view["step"].get("max") is None or view["step"]["id"] != "vibration":
            view = here.client.call("submit_step", idempotency_key=new_key(), **step_arguments(view, good_value(view["step"])))
        arguments = {**step_arguments(view, too_high(view["step"])), "idempotency_key": new_key()}
        out = expect(here.client.call("submit_step", **arguments), "needs_confirmation")
        return {**arguments, "confirm_token": out["confirm"]["token"]}

    waits, comes_late = asked(401), asked(402)
    here.again(lambda: here.write("signing.keys", f"{new}\n{old}"), replaced)
    expect(here.client.call("submit_step", **waits), "out_of_range")
    after = asked(403)
    here.again(lambda: here.change("signing.keys", "half of a"), kept)
    assert here.metric("checkpoint_reload_refused", "file of signing keys") == 1
    here.again(lambda: here.change("signing.keys", new), replaced)
    expect(here.client.call("submit_step", **after), "out_of_range")
    # Under a key that is gone a token says nothing: the person is asked again, and nothing is recorded.
    out = expect(here.client.call("submit_step", **comes_late), "needs_confirmation")
    expect(here.client.call("submit_step", **{**comes_late, "confirm_token": out["confirm"]["token"]}), "out_of_range")


@case("after all of it the server ends politely and its store is whole")
def ends():
    here = place()
    assert here.server.stop() == 0
    here.server.verify()


if __name__ == "__main__":
    run_cases()
