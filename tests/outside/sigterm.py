"""A polite end under load: SIGTERM or SIGINT leaves no call with an unknown outcome, and the exit code is 0.

Each call uses its own connection. After the signal a call is answered, or its connection is refused so that nothing
was sent. A connection that the kernel had queued and the server never took may still be reset; such a call must prove
to have done nothing.
"""
import random
import signal
import threading
import time

from callers import Caller, check_history, check_ledger, workflows_of
from client import Client, expect, new_key
from harness import Server, case, run_cases
import pump

CALLERS = 8


def end_under_load(how, wait):
    server = Server().start()
    stop, up = threading.Event(), threading.Event()
    seed = random.SystemRandom().randrange(10**9)
    print(f"  seed {seed}")
    callers = [Caller(server, number, seed, stop, up, resolve_unknown=False) for number in range(CALLERS)]
    for caller in callers:
        caller.start()
    time.sleep(wait)
    began = time.monotonic()
    code = server.stop(how)
    took = time.monotonic() - began
    for caller in callers:
        caller.join(60)
        assert not caller.is_alive(), f"{caller.name} still waits for an answer"
    assert code == 0, f"exit code {code} after {how.name}: {server.log_text()[-1500:]}"
    assert took < 25, f"took {took:.1f} s"
    server.verify()
    check_ends(server.start(), callers)
    server.verify()
    assert server.stop() == 0


def check_ends(server, callers):
    """Each caller's calls but the last were answered; the last was refused, answered, or surely did nothing."""
    assert not [f for c in callers for f in c.faults], [f for c in callers for f in c.faults][:2]
    client = Client(server, keep_alive=True)
    answered, resets = [], 0
    for caller in callers:
        *earlier, last = caller.records
        assert all(attempt[2] in ("ok", "error") for record in earlier for attempt in record.attempts), caller.name
        final = last.attempts[-1][2]
        assert final in ("refused", "unknown"), f"{caller.name} ended with {final}: the server went on"
        if final == "unknown":
            resets += 1
            out = client.call(last.tool, **last.arguments)
            if last.acknowledged:
                # The repetition of a call that had its answer: it did nothing, sent or not.
                assert out["duplicate"], f"{caller.name}: an acknowledged call was carried out again: {last.tool} {last.arguments}"
                answered += caller.records
                continue
            assert not out["duplicate"], f"{caller.name} got no answer to a call that was carried out: {last.tool} {last.arguments}"
            answered += earlier
            continue
        answered += [record for record in caller.records if record.answers]
    check_ledger(client, answered)
    reset_workflows = {c.records[-1].arguments.get("workflow_id") for c in callers if c.records[-1].attempts[-1][2] == "unknown" and not c.records[-1].acknowledged}
    for workflow, records in workflows_of(answered).items():
        if workflow not in reset_workflows:
            check_history(client, workflow, records)
    print(f"  {sum(record.acknowledged for record in answered)} acknowledged calls, {resets} resets of connections never taken")


@case("SIGTERM under the load of 8 callers")
def term():
    for wait in (0.3, 0.7, 1.1):
        end_under_load(signal.SIGTERM, wait)


@case("SIGINT under the load of 8 callers")
def interrupt():
    end_under_load(signal.SIGINT, 0.5)


@case("SIGTERM while idle connections are open ends at once")
def idle():
    server = Server().start()
    clients = [Client(server, keep_alive=True) for _ in range(4)]
    for number, client in enumerate(clients):
        expect(client.call("start_workflow", **pump.start_arguments(f"PUMP-{number + 1}", key=new_key())), "started")
    began = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - began < 10, "an idle connection holds the server"


if __name__ == "__main__":
    run_cases()
