"""The operator console in headless Chromium: console_browser.mjs walks its pages, this file makes the work that they show and
looks afterwards at what became of it.

Chromium is $CHROMIUM, or the one of the system; on a Debian system its package is installed where that is possible.
"""
import json
import os
import shutil
import subprocess

from bearer import SUPERVISOR, TECHNICIAN, as_person, dev, issue
from client import drive, expect, new_key, submit
from harness import Server, Skip, case, cli, free_port, fresh_folder, run_cases, talk, until
from hooks import Hook, routes
from pump import at_number, blocked, start

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)> \" ' \u202egnirts " + "seal leaks " * 60
SHOTS = os.environ.get("OUTSIDE_SHOTS") or os.path.join(os.environ["OUTSIDE_REPOSITORY"], "target", "outside", "console")
made = {}


def chromium():
    """The path of a Chromium, installed first where a Debian system lets us."""
    names = ("chromium", "chromium-browser", "google-chrome")
    find = lambda: os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if not find() and shutil.which("apt-get") and os.geteuid() == 0:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}}
        subprocess.run(["apt-get", "update"], check=False, timeout=120, **quiet)
        subprocess.run(["apt-get", "install", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core"],
                       check=False, timeout=300, **quiet)
    path = find()
    if not path:
        raise Skip("there is no Chromium: install Debian's package chromium, or name one in $CHROMIUM")
    return path


def served():
    """A server with a console and with work of every kind; made once."""
    if made:
        return made
    folder, hook, admin = fresh_folder(), Hook(lambda *_: 410), free_port()
    server = dev(server=f'admin_listen = "127.0.0.1:{admin}"\ntimezone = "Europe/Berlin"\n', more=routes(folder, ("maintenance-lead", hook.url)))
    server.start()
    tokens = {"supervisor": issue(server, "sue", SUPERVISOR, "--name", "Sue Berger"), "technician": issue(server, "tom", TECHNICIAN, "--name", "Tom Reuter"),
              "foreign": issue(dev(), "sue", SUPERVISOR)}
    tom, sue = as_person(server, tokens["technician"]), as_person(server, tokens["supervisor"])
    # Stopped; corrected and with a hostile report; held by a lost tablet; over.
    stopped = blocked(tom, "PUMP-204")[1]["workflow"]["id"]
    view = at_number(tom, "PUMP-311")
    first = view["step"]
    expect(submit(tom, view), "recorded")
    value = str(float(first["min"]) + 1)
    expect(tom.call("correct_step", workflow_id=view["workflow"]["id"], step_id=first["id"], value=value, unit=first["unit"],
                    reason_code="MISHEARD", idempotency_key=new_key()), "corrected")
    expect(tom.call("report_problem", workflow_id=view["workflow"]["id"], summary=HOSTILE, severity="note", idempotency_key=new_key()), "noted")
    held = start(tom, "PUMP-17")["workflow"]["id"]
    plain = blocked(tom, "PUMP-5")[1]["workflow"]["id"]
    stays = blocked(tom, "PUMP-42")[1]["workflow"]["id"]
    over = drive(sue, start(sue, "PUMP-88"))["workflow"]["id"]
    expect(sue.call("finish_workflow", workflow_id=over, result="passed", idempotency_key=new_key()), "finished")
    dead = lambda: json.loads(cli("outbox", "list", "--dead", "--json", "--config", server.config, cwd=server.folder)[1])["messages"]
    until(dead, what="a message that is given up")
    made.update(server=server, admin=admin, hook=hook, tokens=tokens,
                work={"stopped": stopped, "hostile": view["workflow"]["id"], "held": held, "plain": plain, "stays": stays, "over": over})
    return made


def events(kind, workflow):
    code, text = cli("workflow", "history", workflow, "--json", "--config", made["server"].config, cwd=made["server"].folder)
    assert code == 0, text
    return [event for event in json.loads(text)["events"] if event["kind"] == kind]


@case("Chromium walks the pages, by keyboard, light and dark, at 360 and 1280 pixels")
def browser():
    program, what = chromium(), served()
    os.makedirs(SHOTS, exist_ok=True)
    given = {"base": f"http://127.0.0.1:{what['admin']}", "program": program, "folder": SHOTS, **what["tokens"], **what["work"]}
    script = os.path.join(os.path.dirname(os.environ["OUTSIDE_NODE_MODULES"]), "console_browser.mjs")
    done = subprocess.run([os.environ["NODE"], script], env={**os.environ, "CONSOLE": json.dumps(given)}, timeout=150, check=False)
    assert done.returncode == 0, "see the cases above"


@case("what was sent twice was done once, under the supervisor's name")
def once():
    chromium(), served()
    for kind, workflow in (("block_resolved", made["work"]["stopped"]), ("block_resolved", made["work"]["plain"]), ("lock_released", made["work"]["held"])):
        found = events(kind, workflow)
        assert len(found) == 1 and found[0]["actor"] == "user:sue", (kind, found)


@case("the evidence that was downloaded is what the command prints, and verifies")
def evidence():
    chromium(), served()
    server, workflow = made["server"], made["work"]["over"]
    path = os.path.join(SHOTS, "evidence.json")
    code, text = cli("verify-evidence", path)
    assert code == 0, text
    code, printed = cli("workflow", "evidence", workflow, "--config", server.config, cwd=server.folder)
    assert code == 0, printed
    with open(path, encoding="utf-8") as file:
        downloaded = file.read()
    assert downloaded.endswith("\n")
    without = lambda text: {name: value for name, value in json.loads(text).items() if name not in ("made_at", "digest")}
    assert without(downloaded) == without(printed)
    with open(path, "w", encoding="utf-8") as file:
        file.write(downloaded.replace("Tom Reuter", "Tim Reuter").replace("Sue Berger", "Sun Berger"))
    assert cli("verify-evidence", path)[0] == 4, "a changed name is found"


@case("only the operator's address has the console, and only by a name that is allowed")
def where():
    what = served()
    ask = lambda port, host: talk(port, f"GET /console/sign-in HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())[0]
    admin, main = what["admin"], what["server"].port
    assert ask(admin, f"127.0.0.1:{admin}") == 200 and ask(admin, "localhost") == 200
    assert ask(admin, f"evil.example:{admin}") == 403
    assert ask(main, f"127.0.0.1:{main}") == 404
    # A form that is too large is not read to its end.
    head = f"POST /console/sign-in HTTP/1.1\r\nhost: 127.0.0.1:{admin}\r\norigin: http://127.0.0.1:{admin}\r\ncontent-length: 900000\r\n\r\n"
    assert talk(admin, head.encode() + b"x" * 900000)[0] == 413
    with Server() as plain:
        assert ask(plain.port, f"127.0.0.1:{plain.port}") == 404
        with open(plain.log, encoding="utf-8") as log:
            assert "server.admin_listen" in log.read()


@case("tokens, words and readings are in no line of the log")
def quiet():
    what = served()
    with open(what["server"].log, encoding="utf-8") as file:
        log = file.read()
    for secret in (*what["tokens"].values(), "the sensor was loose", "tablet lost", "seal leaks"):
        assert secret not in log, secret
    what["server"].verify()


if __name__ == "__main__":
    run_cases()
