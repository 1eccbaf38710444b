"""Calls that carry a token, for auth.py and oauth.py."""
import json

from client import Client

TECHNICIAN = "workflow:read workflow:write"
SUPERVISOR = TECHNICIAN + " workflow:supervise"


def post(server, message, token=None, path="/mcp", **headers):
    """(status, headers, body) with just the headers that a client must send."""
    sent = {"content-type": "application/json", "accept": "application/json, text/event-stream", **headers}
    if token is not None:
        sent["authorization"] = f"Bearer {token}"
    return server.request("POST", path, json.dumps(message), sent)


def find(number="a-1"):
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "find_work", "arguments": {}}}


def as_person(server, token, **options):
    client = Client(server, **options)
    client.headers["authorization"] = f"Bearer {token}"
    return client
