"""Webhooks against receivers that answer 500, hang, close, flood, say 410, or lose the server behind them.

At least once, in order within a workflow, under one id and with one body; nobody waits for somebody else's receiver; and
nothing is told that is not committed.
"""
import json
import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pump
from client import Client
from harness import Server, Skip, case, cli, free_port, fresh_folder, run_cases, until
from hooks import SECRET, Hook, routes

LEAD, ALL = "maintenance-lead", "subscribers"


def serving(*hooks, **more):
    """A server whose messages go to (recipient, hook or URL) each."""
    folder = fresh_folder()
    named = [(to, hook.url if isinstance(hook, Hook) else hook) for to, hook in hooks]
    return Server(folder=folder, config=routes(folder, *named), **more)


def outbox(server, *flags):
    code, text = cli("outbox", "list", "--json", "--limit", "100000", *flags, "--config", server.config, cwd=server.folder)
    assert code == 0, text
    return json.loads(text)["messages"]


def pending(server):
    return [row["message"]["id"] for row in outbox(server, "--pending")]


def delivered(server, expected):
    """Waits until nothing is pending, and checks that every message is there and every one that came is known."""
    until(lambda: not pending(server), 60, "an empty outbox")
    rows = outbox(server)
    assert len(rows) == expected, f"{len(rows)} messages, not {expected}"
    return {row["message"]["id"]: row for row in rows}


def known(server, *hooks):
    """Everything that came is a message of the store, whose event is committed; read beside the running server."""
    rows = {row["message"]["id"]: row["message"] for row in outbox(server)}
    client, histories = Client(server), {}
    for hook in hooks:
        hook.check()
        for _, message, _ in hook.got:
            stored = rows.get(message["id"])
            assert stored and stored["data"] == message["data"] and stored["seq"] == message["seq"], message
            workflow = message["workflow_id"]
            if workflow not in histories:
                view = client.call("get_status", workflow_id=workflow, detail="full")
                histories[workflow] = {event["seq"] for event in view["history"]}
            assert message["seq"] in histories[workflow], f"{message['id']} was told and is in no history"


@case("a message is signed, comes once, and says what the history says")
def _():
    hook = Hook()
    with serving(("*", hook)) as server:
        pump.blocked(Client(server))
        delivered(server, 3)
        known(server, hook)
        kinds = sorted((m["type"], m["id"].split("/")[2]) for m in hook.taken)
        assert kinds == [("workflow_blocked", LEAD), ("workflow_blocked", ALL), ("workflow_started", ALL)], kinds
        assert len(hook.got) == 3, hook.got
        assert server.request("GET", "/metrics")[2].decode().count('checkpoint_notifications_delivered_total{sink="webhook"} 3')
    hook.close()


def misbehaving(behave, given_up):
    """One receiver of two misbehaves, for three workflows: what must hold of both. `behave` answers the first attempt at
    each message; afterwards the receiver is well again. `given_up`: that first answer gives the message up."""
    folder, tried = fresh_folder(), set()
    database = os.path.join(folder, "checkpoint.db")

    def first_badly(_, message):
        if message["id"] in tried:
            return 204
        tried.add(message["id"])
        return behave

    bad, good = Hook(first_badly, database=database), Hook(database=database)
    with Server(folder=folder, config=routes(folder, (ALL, bad.url), (LEAD, good.url))) as server:
        client = Client(server, keep_alive=True)
        for number in range(3):
            pump.blocked(client, f"PUMP-{number}")
        # Others are not kept waiting: not whoever works, nor who is told by the other receiver.
        until(lambda: len(good.ids()) == 3, 8, f"{behave}: the messages of the other receiver")
        assert len(good.got) == 3, f"{behave}: once each"
        bad.release.set()
        until(lambda: not pending(server), 90, f"{behave}: an empty outbox")
        rows = {row["message"]["id"]: row for row in outbox(server)}
        theirs = {id for id in rows if f"/{ALL}/" in id}
        assert len(theirs) == 6, rows
        dead = {id for id, row in rows.items() if row["state"] == "dead"}
        assert dead == (theirs if given_up else set()), f"{behave}: {dead}"
        # At least once, and every one that is not given up got through.
        assert set(bad.ids()) == theirs - dead, f"{behave}: {theirs - dead - set(bad.ids())} were never taken"
        assert tried == theirs, f"{behave}: each was tried"
        # Signed, in order for each workflow, one id and one body, of an event that was committed by then.
        known(server, bad, good)
        server.verify()
    bad.close(), good.close()


@case("whatever a receiver does, messages come at least once, in order, with one id and body, after their commit; others wait for nothing")
def _():
    # At once, since most of each is waiting for a back-off or a time-out.
    matrix = [(500, False), ("hang", False), ("close", False), ("flood", False), (429, False), (410, True)]
    with ThreadPoolExecutor(len(matrix)) as pool:
        for done in [pool.submit(misbehaving, *row) for row in matrix]:
            done.result()


@case("receivers that hang hold nobody else, however many messages wait for them")
def _():
    hanging, good = Hook(lambda *_: "hang"), Hook()
    with serving((LEAD, hanging), (ALL, good)) as server:
        client = Client(server, keep_alive=True)
        for number in range(40):
            pump.blocked(client, f"PUMP-{number}")
        until(lambda: len(set(good.ids())) == 80, 10, "all messages of the other receiver within ten seconds")
        assert hanging.got, "the one that hangs was tried"
        hanging.behave = lambda *_: 204
        hanging.release.set()
        # Those that failed wait up to some tens of seconds by their back-off; the point is made when some came.
        until(lambda: len(set(hanging.ids())) >= 8, 60, "messages once it does not hang any more")
        known(server, hanging, good)
    hanging.close(), good.close()


@case("410 and 422 give a message up at once, and the next of its stream goes on; it can be sent again late")
def _():
    hook = Hook(lambda number, _: (410, 422, 204)[min(number, 2)])
    with serving(("*", hook)) as server:
        pump.blocked(Client(server))
        until(lambda: len(outbox(server, "--dead")) == 2, 10, "two dead messages")
        dead = [row["message"]["id"] for row in outbox(server, "--dead")]
        assert all(row["attempts"] == 1 and "receiver answered" in row["last_error"] for row in outbox(server, "--dead"))
        code, text = cli("outbox", "retry", "--all", "--config", server.config, cwd=server.folder)
        assert code == 0, text
        until(lambda: set(dead) <= set(hook.ids()), 20, "the dead messages, under their old ids")
        hook.check(late=dead)
    hook.close()


@case("dead messages that are purged are gone, and what is behind them goes out as if they had never been")
def _():
    # The first message of the stream is given up; the one behind it has to wait for a receiver that is busy.
    hook = Hook(lambda number, _: 410 if number == 0 else 503)
    with serving((ALL, hook)) as server:
        pump.blocked(Client(server))
        until(lambda: len(outbox(server, "--dead")) == 1 and len(hook.got) > 1, 10, "one dead message, and one that waits")
        waiting = pending(server)
        assert len(waiting) == 1, waiting

        def purge(*flags):
            code, text = cli("outbox", "purge", "--older-than", "1ms", "--json", *flags, "--config", server.config, cwd=server.folder)
            assert code == 0, text
            return json.loads(text)

        assert purge()["dead"] is None and purge("--dead", "--dry-run")["dead"] == 1 and purge("--dead")["dead"] == 1
        assert outbox(server, "--dead") == [] and pending(server) == waiting, "what is to be delivered stays"
        hook.behave = lambda *_: 204
        until(lambda: hook.ids() == waiting, 30, "the message behind the one that was purged")
        hook.check()
    hook.close()


@case("a gigabyte of an answer is not read")
def _():
    hook = Hook(lambda *_: "flood")
    with serving(("*", hook)) as server:
        pump.start(Client(server))
        delivered(server, 1)
        assert hook.written < 64 * 2**20, f"{hook.written} bytes went out"
        with open(f"/proc/{server.process.pid}/status", encoding="utf-8") as status:
            peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
        assert peak < 400_000, f"{peak} kB of memory at most"
        known(server, hook)
    hook.close()


def killed_at(point, passes):
    """A server that ends itself at a point of the delivery, and what came before and after its restart."""
    folder = fresh_folder()
    hook = Hook(database=os.path.join(folder, "checkpoint.db"))
    config = routes(folder, ("*", hook.url))
    server = Server(folder=folder, config=config, environment={"FAILPOINTS": f"{point}={passes}*off->1*return(abort)"}).start()
    if "is built for tests" not in server.log_text():
        server.stop()
        raise Skip("this binary has no failpoints: build it with --features failpoints")
    try:
        pump.blocked(Client(server))
    except OSError:
        pass  # It died before a call was answered; what was committed is told all the same.
    until(lambda: not server.alive(), 20, f"the end of the server at {point}")
    server.verify()
    before = len(hook.got)
    server.environment = {}
    server.start()
    until(lambda: not pending(server), 90, f"an empty outbox after {point}")
    told, rows = set(hook.ids()), {row["message"]["id"] for row in outbox(server)}
    assert told == rows and rows, f"{point}: {rows - told} were never told"
    known(server, hook)
    if point == "outbox.send_after" and passes == 0:
        assert before == 1 and len(hook.got) == len(rows) + 1, "200 and killed before the mark: told again"
    assert server.stop() == 0
    hook.close()


@case("a server killed at any point of claim, send and mark delivers at least once, in order, after its restart")
def _():
    # At once, since each waits until the lease of the killed server is over.
    points = [(point, passes) for point in ("outbox.claim", "outbox.send", "outbox.send_after", "outbox.mark") for passes in (0, 1)]
    with ThreadPoolExecutor(len(points)) as pool:
        for done in [pool.submit(killed_at, *point) for point in points]:
            done.result()


@case("two servers on one file share the messages, each goes out once, and one takes over from the other when it is killed")
def _():
    hook = Hook()
    folder = fresh_folder()
    config = routes(folder, ("*", hook.url))
    first = Server(folder=folder, config=config)
    second = Server(folder=fresh_folder(), database=first.database, config=config)
    first.start(), second.start()
    clients = [Client(server, keep_alive=True) for server in (first, second)]
    for number in range(30):
        pump.start(clients[number % 2], f"PUMP-{number}")
    until(lambda: not pending(first), 30, "an empty outbox")
    ids = hook.ids()
    failed = [(row["message"]["id"], row["attempts"], row["last_error"]) for row in outbox(first) if row["attempts"]]
    assert len(ids) == len(set(ids)) == 30, f"{len(ids)} deliveries of {len(set(ids))} messages; failed first: {failed}"
    slow = threading.Event()
    hook.behave = lambda *_: slow.wait(3) and 204 or 204
    for number in range(30, 50):
        pump.start(clients[1], f"PUMP-{number}")
    until(lambda: len(hook.got) > 32, 20, "deliveries under way")
    first.kill9()
    slow.set()
    until(lambda: not pending(second), 60, "an empty outbox")
    assert len(set(hook.ids())) == 50
    known(second, hook)
    assert second.stop() == 0
    second.verify()
    hook.close()


@case("addresses inside are refused unless the route allows them, and metadata always")
def _():
    def refused(url, allow_private):
        folder = fresh_folder()
        config = routes(folder, ("*", url)).replace("allow_private = true", f"allow_private = {allow_private}")
        server = Server(folder=folder, config=config)
        try:
            server.start(wait=20)
        except Exception as fault:
            return getattr(fault, "code", None), getattr(fault, "log", str(fault))
        server.kill9()
        return 0, ""

    for url in ("http://127.0.0.1:9/", "https://127.0.0.1:9443/", "https://localhost/", "https://[::ffff:10.0.0.1]/",
                "https://user:pw@hooks.example.com/", "https://169.254.169.254/latest/"):
        code, log = refused(url, "false")
        assert code == 2 and "webhook" in log, (url, code, log[-500:])
    code, log = refused("http://169.254.169.254/latest/", "true")
    assert code == 2 and "metadata" in log, (code, log[-500:])
    assert refused("http://127.0.0.1:9/", "true")[0] == 0


@case("the example of a receiver takes the messages and prints each once")
def _():
    repository = os.environ.get("OUTSIDE_REPOSITORY") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    port = free_port()
    example = subprocess.Popen([sys.executable, os.path.join(repository, "examples/webhook_receiver/receiver.py"), str(port)],
                               env={**os.environ, "WEBHOOK_SECRET": SECRET}, stdout=subprocess.PIPE, text=True)
    try:
        until(lambda: reachable(port), 20, "the example")
        with serving(("*", f"http://127.0.0.1:{port}/")) as server:
            pump.blocked(Client(server))
            printed = [json.loads(example.stdout.readline()) for _ in range(3)]
            assert {m["id"] for m in printed} == set(delivered(server, 3)), printed
    finally:
        example.kill()
        example.wait()


def reachable(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


if __name__ == "__main__":
    run_cases()
