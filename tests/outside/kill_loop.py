"""Kill -9 at random times under load: nothing acknowledged is lost, nothing happens twice, nobody shares an asset.

Callers work inspections on their own and on contended assets, each call under its own key; when the server dies they
send the same call again until they know. Parameters: KILLS (20), CALLERS (8), SEED (random, printed).
"""
import os
import random
import threading
import time

from callers import Caller, audit, controls
from client import Client
from harness import Server, case, cli, run_cases

KILLS = int(os.environ.get("KILLS", "20"))
CALLERS = int(os.environ.get("CALLERS", "8"))
SEED = os.environ.get("SEED") or str(random.SystemRandom().randrange(10**9))


def torture(server):
    """Runs the callers through all kills; the last kill leaves the server dead. Returns the callers."""
    chance, stop, up = random.Random(SEED), threading.Event(), threading.Event()
    up.set()
    callers = [Caller(server, number, SEED, stop, up) for number in range(CALLERS)]
    for caller in callers:
        caller.start()
    for kill in range(KILLS):
        # The wait is the experiment: when the kill comes must be random.
        time.sleep(chance.uniform(0.0, 0.9))
        up.clear()
        assert server.alive(), f"the server ended by itself before kill {kill + 1}: {server.log_text()[-1500:]}"
        server.kill9()
        code, text = cli("workflow", "verify", "--config", server.config, cwd=server.folder)
        assert code == 0, f"workflow verify exits {code} on the store after kill {kill + 1}: {text[-1500:]}"
        server.start()
        up.set()
        assert any(caller.is_alive() for caller in callers), [fault for caller in callers for fault in caller.faults]
    stop.set()
    for caller in callers:
        caller.join(150)
        assert not caller.is_alive(), f"{caller.name} does not end"
    return callers


@case(f"{CALLERS} callers, {KILLS} kills, seed {SEED}: nothing lost, nothing doubled")
def kills():
    server = Server().start()
    callers = torture(server)
    records, states, assets, attempts = audit(server, callers)
    done = sum(record.acknowledged for record in records)
    print(f"  {done} acknowledged calls in {len(states)} workflows on {assets} assets; attempts: {dict(attempts)}")
    assert done >= 10 * KILLS, "too little work to mean anything"
    assert attempts["unknown"] >= min(KILLS, 5), "the kills hit no call: the loop shows nothing"
    refused = [r for r in records if not r.out["ok"] and r.out["error"]["code"] == "ASSET_LOCKED"]
    assert refused, "no asset was contended"
    controls(Client(server), records)
    server.verify()
    assert server.stop() == 0
    server.verify()


if __name__ == "__main__":
    run_cases()
