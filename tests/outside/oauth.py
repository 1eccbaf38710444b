"""A real authorization server (npm oidc-provider, on loopback) from discovery to the end of an inspection; what happens
when its keys change and when it is away; and the official Python client, which authenticates from a 401 by itself.

The TypeScript clients do the same in oauth_clients.mjs, which this file runs. Needs $OUTSIDE_NODE_MODULES (run.sh sets it).
"""
import asyncio
import base64
import hashlib
import http.cookies
import json
import os
import secrets
import signal
import subprocess
import sys
from http.client import HTTPConnection
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
from mcp import Client as OfficialClient
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

import pump
from bearer import SUPERVISOR, TECHNICIAN, as_person, find, post
from client import drive, expect, new_key, submit, too_high
from harness import Server, atexit, case, cli, exchange, free_port, fresh_folder, run_cases, until

NODE, MODULES = os.environ.get("NODE", "node"), os.environ.get("OUTSIDE_NODE_MODULES", "")
CALLBACK = "http://127.0.0.1/callback"


class AuthorizationServer:
    """oidc-provider in a process of its own; stop() and start() again keep its keys unless new ones are asked for."""

    def __init__(self, algorithm="RS256"):
        self.folder, self.port, self.algorithm, self.process, self.generation = fresh_folder(), free_port(), algorithm, None, 1
        self.issuer = f"http://127.0.0.1:{self.port}"
        atexit.register(self.stop)

    def start(self):
        script = os.path.join(MODULES, "..", "authorization_server.mjs")
        keys = os.path.join(self.folder, f"keys-{self.generation}.json")
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen([NODE, script, str(self.port), keys], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            env={**os.environ, "TOKEN_ALG": self.algorithm})
        until(lambda: self.answers() or self.process.poll() is not None, 30, "the authorization server")
        assert self.answers(), self.log()
        return self

    def answers(self):
        try:
            return self.request("GET", "/.well-known/oauth-authorization-server")[0] == 200
        except OSError:
            return False

    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as file:
            return file.read()[-1500:]

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def rotate(self):
        """The same server with other keys: the old ones are gone at once."""
        self.stop()
        self.generation += 1
        self.start()

    def request(self, method, path, form=None, cookies=None):
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            headers = {"cookie": "; ".join(f"{name}={value}" for name, value in (cookies or {}).items())} if cookies else {}
            if form is not None:
                headers["content-type"] = "application/x-www-form-urlencoded"
            connection.request(method, path, urlencode(form) if form is not None else None, headers)
            response = connection.getresponse()
            for line in response.headers.get_all("set-cookie") or []:
                for name, morsel in http.cookies.SimpleCookie(line).items():
                    if cookies is not None:
                        cookies[name] = morsel.value
            return response.status, dict((k.lower(), v) for k, v in response.getheaders()), response.read()
        finally:
            connection.close()

    def token(self, **form):
        status, _, body = self.request("POST", "/token", form)
        assert status == 200, (status, body)
        return json.loads(body)["access_token"]

    def walk(self, url):
        """Follows an authorization request as a browser does; returns the address that leads back to the client."""
        cookies = {}
        for _ in range(12):
            parts = urlsplit(url)
            status, headers, body = self.request("GET", f"{parts.path}?{parts.query}", cookies=cookies)
            assert status in (302, 303), (status, url, body[:600])
            url = headers["location"]
            if urlsplit(url).port != self.port and urlsplit(url).netloc:
                return url
        raise AssertionError("the authorization server goes in circles")

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()


def server_of(authority, challenge="headerless", more=""):
    """A Checkpoint that takes the tokens of this authorization server."""
    server = Server("@public", config=f'[auth]\nmode = "jwt"\nissuer = "{authority.issuer}"\nchallenge = "{challenge}"\n{more}')
    with open(server.config, encoding="utf-8") as file:
        text = file.read().replace("@public", f'public_url = "http://127.0.0.1:{server.port}"')
    with open(server.config, "w", encoding="utf-8") as file:
        file.write(text)
    return server


def discover(server, path="/mcp"):
    """From the address of a server to its authorization server's metadata, as a client without a challenge does it."""
    status, _, body = server.request("GET", f"/.well-known/oauth-protected-resource{path}")
    assert status == 200, (status, body)
    resource = json.loads(body)
    issuer = urlsplit(resource["authorization_servers"][0])
    connection = HTTPConnection(issuer.hostname, issuer.port, timeout=10)
    status, _, body = exchange(connection, "GET", "/.well-known/oauth-authorization-server")
    connection.close()
    metadata = json.loads(body)
    assert status == 200 and metadata["issuer"] == resource["authorization_servers"][0], metadata
    assert "S256" in metadata["code_challenge_methods_supported"] and "client_credentials" in metadata["grant_types_supported"]
    return resource, metadata


def service_token(authority, resource):
    return authority.token(grant_type="client_credentials", client_id="alexa-service", client_secret="alexa-service-secret",
                           scope="mcp:service", resource=resource)


def person_token(authority, resource, who="ann", scope=TECHNICIAN):
    """Authorization code with PKCE."""
    verifier = secrets.token_urlsafe(48)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    asked = {"client_id": "assistant", "response_type": "code", "redirect_uri": CALLBACK, "scope": f"openid {scope}", "state": "s",
             "resource": resource, "code_challenge": challenge, "code_challenge_method": "S256", "login_hint": who}
    back = parse_qs(urlsplit(authority.walk(f"{authority.issuer}/auth?{urlencode(asked)}")).query)
    assert "code" in back and back["state"] == ["s"], back
    return authority.token(grant_type="authorization_code", client_id="assistant", code=back["code"][0], redirect_uri=CALLBACK,
                           code_verifier=verifier, resource=resource)


def status_of(server, token, message=None):
    return post(server, message or find(), token)[0]


@case("discovery, service token, 401 on a call, user token, the procedure to its end")
def from_discovery_to_the_end():
    for algorithm in ("RS256", "ES256"):
        with AuthorizationServer(algorithm) as authority, server_of(authority) as server:
            assert status_of(server, None) == 401
            resource, _ = discover(server)
            assert resource["resource"] == f"http://127.0.0.1:{server.port}/mcp" and resource["scopes_supported"] == TECHNICIAN.split()
            machine = service_token(authority, resource["resource"])
            status, _, body = post(server, {"jsonrpc": "2.0", "id": "l", "method": "tools/list"}, machine)
            assert status == 200 and len(json.loads(body)["result"]["tools"]) >= 9, (status, body)
            status, headers, body = post(server, find(), machine)
            assert status == 401 and body == b'{"error":"unauthorized"}' and "www-authenticate" not in headers, (status, headers)
            ann = as_person(server, person_token(authority, resource["resource"]))
            eve = as_person(server, person_token(authority, resource["resource"], "eve", SUPERVISOR))
            eve.known_schemas()
            view = expect(ann.call("start_workflow", **pump.start_arguments(key=new_key())), "started")
            assert view["workflow"]["owner"] == {"id": "ann", "name": "Ann Miller"}, view["workflow"]["owner"]
            view = drive(ann, view, lambda v: v["step"]["kind"] == "number")
            view = expect(submit(ann, view, too_high(view["step"])), "out_of_range")
            view = expect(eve.call("resolve_block", workflow_id=view["workflow"]["id"], block_id=view["blocks"][0]["id"], decision=pump.REDO,
                                   comment="gauge was not zeroed", idempotency_key=new_key()), "resolved")
            view = drive(ann, expect(ann.call("get_status", workflow_id=view["workflow"]["id"]), "view"))
            expect(ann.call("finish_workflow", workflow_id=view["workflow"]["id"], result="passed", idempotency_key=new_key()), "finished")
            server.verify()


@case("a token of the same authorization server for another resource, and its other tokens, are refused")
def other_tokens():
    with AuthorizationServer() as authority, AuthorizationServer() as stranger, server_of(authority) as server:
        own = f"http://127.0.0.1:{server.port}/mcp"
        assert status_of(server, person_token(authority, own)) == 200
        for name, token in {
            "another resource": person_token(authority, "https://other.example/mcp"),
            "with a slash": person_token(authority, own + "/"),
            "of the origin": person_token(authority, own.removesuffix("/mcp")),
            "another authorization server": person_token(stranger, own),
        }.items():
            assert status_of(server, token) == 401, name


@case("by_path: each path takes tokens for itself only, and names its own document")
def both_paths():
    with AuthorizationServer() as authority, server_of(authority, "by_path") as server:
        for path in ("/mcp", "/mcp-std"):
            resource, _ = discover(server, path)
            assert resource["resource"].endswith(path), resource
            token = person_token(authority, resource["resource"])
            other = {"/mcp": "/mcp-std", "/mcp-std": "/mcp"}[path]
            assert [post(server, find(), token, where)[0] for where in (path, other, path, other)] == [200, 401, 200, 401], path
    # An authorization server that knows one name for it: every path takes that, and no URL.
    with AuthorizationServer() as authority, server_of(authority, "by_path", 'audience = "https://api.example/checkpoint"') as server:
        token = person_token(authority, "https://api.example/checkpoint")
        url = person_token(authority, f"http://127.0.0.1:{server.port}/mcp")
        for path in ("/mcp", "/mcp-std"):
            assert (post(server, find(), token, path)[0], post(server, find(), url, path)[0]) == (200, 401), path


@case("the authorization server changes its keys: new tokens count within its pause, old ones no more")
def rotation():
    with AuthorizationServer() as authority, server_of(authority) as server:
        own = f"http://127.0.0.1:{server.port}/mcp"
        old = person_token(authority, own)
        assert status_of(server, old) == 200
        authority.rotate()
        new = person_token(authority, own)
        until(lambda: status_of(server, new) == 200, 45, "the new key")
        until(lambda: status_of(server, old) == 401, 5, "the end of the old key")
        assert status_of(server, new) == 200


@case("the authorization server is away: tokens count on; a server that never saw its keys says 503 until it comes")
def outage():
    with AuthorizationServer() as authority, server_of(authority) as server:
        own = f"http://127.0.0.1:{server.port}/mcp"
        known, fresh = person_token(authority, own), person_token(authority, own, "eve")
        assert status_of(server, known) == 200
        authority.stop()
        assert status_of(server, known) == status_of(server, fresh) == 200
        assert status_of(server, "a.b.c") == status_of(server, None) == 401
        late = server_of(authority)
        with late:
            status, headers, body = post(late, find(), known)
            assert status == 503 and int(headers["retry-after"]) >= 1 and json.loads(body)["error"] == "keys_unavailable", (status, headers, body)
            assert status_of(late, None) == 401, "no token needs no key to be refused"
            code, text = cli("doctor", "--config", late.config, "--quick", cwd=late.folder)
            assert code == 1 and "cannot fetch" in text, text
            authority.start()
            token = person_token(authority, f"http://127.0.0.1:{late.port}/mcp")
            until(lambda: status_of(late, token) == 200, 20, "the keys")


@case("doctor finds the authorization server as clients need it, and says when it is another")
def doctor():
    with AuthorizationServer() as authority:
        server = server_of(authority)
        code, text = cli("doctor", "--config", server.config, "--quick", cwd=server.folder)
        assert code == 0 and "S256" in text and "client_credentials" in text and "were fetched" in text, text
        code, text = cli("doctor", "--config", server.config, "--quick", "--set", f"auth.issuer={authority.issuer}/", cwd=server.folder)
        assert code == 1 and "another issuer" in text, text


@case("auth.mirror: the authorization server's document is here too, byte for byte")
def mirror():
    with AuthorizationServer() as authority, server_of(authority, more="mirror = true") as server:
        status, headers, body = server.request("GET", "/.well-known/oauth-authorization-server", headers={"origin": "https://any.example"})
        assert status == 200 and headers["access-control-allow-origin"] == "*", (status, headers)
        assert body == authority.request("GET", "/.well-known/oauth-authorization-server")[2]


class Memory:
    """Where the official client keeps what it got."""

    def __init__(self):
        self.tokens = self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def official(server, authority, path):
    """The official client with nothing but the address of the server."""
    url, memory, returned = f"http://127.0.0.1:{server.port}{path}", Memory(), []

    async def redirect(address):
        returned.append(await asyncio.to_thread(authority.walk, address))

    async def callback():
        back = parse_qs(urlsplit(returned[-1]).query)
        return AuthorizationCodeResult(code=back["code"][0], state=back["state"][0], iss=back.get("iss", [None])[0])

    metadata = OAuthClientMetadata(client_name="outside", redirect_uris=[CALLBACK], grant_types=["authorization_code", "refresh_token"],
                                   token_endpoint_auth_method="none", application_type="native")
    provider = OAuthClientProvider(url, metadata, memory, redirect, callback)
    async with httpx2.AsyncClient(auth=provider, follow_redirects=True) as http_client:
        async with OfficialClient(streamable_http_client(url, http_client=http_client)) as client:
            listed = [tool.name for tool in (await client.list_tools()).tools]
            found = await client.call_tool("find_work", {})
    assert "submit_step" in listed and "resolve_block" not in listed, listed
    assert found.structured_content["ok"] and memory.tokens and len(returned) == 1, found
    return memory.tokens.scope


@case("the official Python client authenticates from a 401 without the header, and from one with it")
def official_python():
    with AuthorizationServer() as authority, server_of(authority, "by_path") as server:
        for path in ("/mcp", "/mcp-std"):
            scope = asyncio.run(official(server, authority, path))
            assert set(TECHNICIAN.split()) <= set(scope.split()), (path, scope)


@case("the official TypeScript clients do the same")
def official_typescript():
    with AuthorizationServer() as authority, server_of(authority, "by_path") as server:
        script = os.path.join(MODULES, "..", "oauth_clients.mjs")
        ran = subprocess.run([NODE, script, f"http://127.0.0.1:{server.port}"], capture_output=True, text=True, timeout=120, check=False)
        sys.stdout.write("".join(f"     {line}\n" for line in ran.stdout.splitlines()))
        assert ran.returncode == 0, ran.stdout + ran.stderr[-1500:]
        assert "headerless ok" in ran.stdout and "challenge ok" in ran.stdout, ran.stdout


if __name__ == "__main__":
    run_cases()
