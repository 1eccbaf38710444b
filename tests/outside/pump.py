"""What the tests know about the shipped pump inspection (agent.py must not import this)."""
from client import expect, new_key, submit, too_high

PROCEDURE, ROLE = "pump-inspection", "pump"
ABORT, REDO = "abort", "require_redo"
REASON = "MISHEARD"


def start_arguments(asset="PUMP-204", order="WO 1", key=None):
    arguments = {"procedure_id": PROCEDURE, "assets": {ROLE: asset}, "inputs": {"work_order": order}}
    return {**arguments, "idempotency_key": key} if key else arguments


def start(client, asset="PUMP-204", order="WO 1"):
    """A new inspection; returns its view."""
    return expect(client.call("start_workflow", **start_arguments(asset, order, new_key())), "started", duplicate=False)


def at_number(client, asset="PUMP-204"):
    """A new inspection whose open step is the first that takes a number."""
    view = start(client, asset)
    while view["step"]["kind"] != "number":
        view = expect(submit(client, view), "recorded")
    return view


def blocked(client, asset="PUMP-204"):
    """A new inspection blocked by a reading just above the accepted range; (view before the reading, view after)."""
    before = at_number(client, asset)
    after = expect(submit(client, before, too_high(before["step"])), "out_of_range")
    assert after["workflow"]["state"] == "BLOCKED", after
    return before, after
