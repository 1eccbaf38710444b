"""Tokens and calls that carry them, for auth.py, oauth.py and people.py."""
import json
import subprocess

from client import Client
from harness import Server, binary, clean_environment

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


def dev(challenge="headerless", more="", **options):
    """A server that takes tokens of its own key."""
    return Server(config=f'[auth]\nmode = "dev"\nchallenge = "{challenge}"\n{more}', **options)


def issue(server, sub="ann", scope=TECHNICIAN, *more):
    """One token, as a developer gets it."""
    command = [binary(), "token", "issue", "--config", server.config, "--sub", sub, "--scope", scope, *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=server.folder, env=clean_environment(), check=False)
    assert done.returncode == 0, done.stderr
    token = done.stdout.strip()
    assert token.count(".") == 2 and "\n" not in token, done.stdout
    return token
