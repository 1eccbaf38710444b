"""Black-box driver: starts and ends the real binary, speaks HTTP to it, runs cases and reports them.

Every test file of this folder stands on it, on client.py for MCP and on answers.py for what an answer must look like.
Standard library only. The binary is $OUTSIDE_BIN (run.sh sets it). Servers listen on 127.0.0.1 only and each has its own data folder.

With $WF_AWS_ENDPOINT each server has a table of its own on that emulator of DynamoDB instead of a file (`cargo xtask aws`).

`python harness.py COMMAND…` runs a command beside a fresh server, with its address in $OUTSIDE_URL.
"""
import atexit
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import uuid
from http.client import HTTPConnection


# Cases.


class Skip(Exception):
    """This machine cannot run the case; reported as skipped, never as passed."""


_cases = []


def case(title):
    """Registers a function as a case of its file."""
    def register(function):
        _cases.append((title, function))
        return function
    return register


def run_cases():
    """Runs the registered cases (or those whose title contains an argument) and exits 0 if none failed."""
    suite = os.path.splitext(os.path.basename(sys.argv[0]))[0]
    chosen = [c for c in _cases if not sys.argv[1:] or any(a in c[0] for a in sys.argv[1:])]
    failed = 0
    for title, function in chosen:
        began = time.monotonic()
        try:
            function()
        except Skip as reason:
            print(f"SKIP {suite}: {title}: {reason}", flush=True)
        except Exception as fault:
            failed += 1
            traceback.print_exc()
            where = traceback.extract_tb(fault.__traceback__)[-1]
            text = " ".join(str(fault).split())[:900] or type(fault).__name__
            print(f"FAIL {suite}: {title}: {os.path.basename(where.filename)}:{where.lineno}: {text}", flush=True)
        else:
            print(f"PASS {suite}: {title} ({time.monotonic() - began:.1f} s)", flush=True)
    sys.exit(1 if failed or not chosen else 0)


def until(condition, deadline=20.0, what="the condition"):
    """Polls until condition() is truthy and returns its value."""
    end = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"{what} did not come true within {deadline} s"
        time.sleep(0.01)


# The binary.


def binary():
    path = os.environ.get("OUTSIDE_BIN")
    if not path or not os.access(path, os.X_OK):
        sys.exit("no binary: set OUTSIDE_BIN to the built wf-cli")
    return os.path.abspath(path)


def clean_environment():
    """The environment without WF_*, which would configure the binary."""
    return {name: value for name, value in os.environ.items() if not name.startswith("WF_")}


def cli(*arguments, timeout=60, **options):
    """Runs one command of the binary to its end: (exit code, stdout + stderr)."""
    done = subprocess.run([binary(), *arguments], capture_output=True, text=True, errors="replace", timeout=timeout,
                          stdin=subprocess.DEVNULL, env=clean_environment(), **options)
    return done.returncode, done.stdout + done.stderr


def free_port():
    """A free port below the range that outgoing connections use, so that a restart finds it free again."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def fresh_folder():
    folder = tempfile.mkdtemp(prefix="checkpoint-outside-")
    if not os.environ.get("OUTSIDE_KEEP"):
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


class NotStarted(Exception):
    """The server ended, or never got ready. `code` is its exit code, or None."""

    def __init__(self, code, log):
        super().__init__(f"serve is not ready (exit code {code}): {log[-1500:]}")
        self.code, self.log = code, log


EMULATOR = os.environ.get("WF_AWS_ENDPOINT")


def own_state(database):
    """The part of the configuration that says where the state is: in this file, or in a new table on the emulator."""
    if EMULATOR:
        table = f"outside-{uuid.uuid4().hex}"
        return f'[backend]\nkind = "aws"\n[backend.aws]\ntable = "{table}"\nendpoint_url = "{EMULATOR}"\n'
    return f'[backend]\nkind = "local"\n[backend.local]\npath = "{database}"\n'


class Server:
    """One `wf-cli serve` on its own port with its own data folder; survives kill9() and start() again."""

    def __init__(self, server="", config="", database=None, folder=None, arguments=(), environment=None, state=None, **spawn):
        self.folder = folder or fresh_folder()
        self.database = database or os.path.join(self.folder, "checkpoint.db")
        self.port, self.arguments, self.spawn, self.process = free_port(), list(arguments), spawn, None
        self.environment = environment or {}
        self.state = state or own_state(self.database)
        self.config = os.path.join(self.folder, "checkpoint.toml")
        self.log = os.path.join(self.folder, "server.log")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f'[server]\nlisten = "127.0.0.1:{self.port}"\n{server}\n{self.state}{config}\n')
        # A file makes itself; a table must be there.
        self.lacks_table = bool(EMULATOR) and state is None
        atexit.register(self.kill9)

    @staticmethod
    def beside(other):
        """Another server on the state of `other`."""
        return Server(state=other.state)

    def start(self, wait=30.0):
        if self.lacks_table:
            code, text = cli("aws", "init", "--config", self.config, cwd=self.folder)
            assert code == 0, f"aws init exits {code}: {text}"
            self.lacks_table = False
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([binary(), "serve", "--config", self.config, *self.arguments], cwd=self.folder,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**clean_environment(), **self.environment},
                                            **self.spawn)
        end = time.monotonic() + wait
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if self.request("GET", "/readyz", timeout=2)[0] == 200:
                    return self
            except OSError:
                time.sleep(0.01)
        code = self.process.poll()
        self.kill9()
        raise NotStarted(code, self.log_text())

    def log_text(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill9(self):
        if self.alive():
            self.process.kill()
        if self.process:
            self.process.wait()

    def stop(self, how=signal.SIGTERM, wait=40.0):
        """Asks the server to end and returns its exit code."""
        assert self.alive(), f"the server ended by itself with {self.process and self.process.returncode}: {self.log_text()[-1500:]}"
        self.process.send_signal(how)
        try:
            return self.process.wait(wait)
        except subprocess.TimeoutExpired:
            self.kill9()
            raise AssertionError(f"the server did not end within {wait} s of {how.name}") from None

    def verify(self):
        """`workflow verify` over the whole store must find nothing."""
        code, text = cli("workflow", "verify", "--config", self.config, cwd=self.folder)
        assert code == 0, f"workflow verify exits {code}: {text[-1500:]}"

    def request(self, method, path, body=None, headers=None, timeout=30):
        """One request on its own connection: (status, headers in lower case, body)."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            return exchange(connection, method, path, body, headers)
        finally:
            connection.close()

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        if kind is None:
            code = self.stop()
            assert code == 0, f"exit code {code} after SIGTERM: {self.log_text()[-1500:]}"
        else:
            print(f"--- end of {self.log}:\n{self.log_text()[-3000:]}", file=sys.stderr)
            self.kill9()


def exchange(connection, method, path, body=None, headers=None):
    connection.request(method, path, body=body, headers=headers or {})
    response = connection.getresponse()
    return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()


def talk(port, data, wait=10.0):
    """Sends raw bytes and reads until the server closes or `wait` seconds pass: (status or None, closed, bytes)."""
    received, closed = b"", False
    with socket.create_connection(("127.0.0.1", port), timeout=wait) as sock:
        try:
            sock.sendall(data)
        except OSError:
            pass  # A server may answer and close before it has read everything.
        end = time.monotonic() + wait
        try:
            while (left := end - time.monotonic()) > 0:
                sock.settimeout(left)
                chunk = sock.recv(65536)
                if not chunk:
                    closed = True
                    break
                received += chunk
                if whole(received):
                    break
        except TimeoutError:
            pass
        except OSError:
            closed = True
    found = re.match(rb"HTTP/1\.[01] (\d{3})", received)
    return int(found.group(1)) if found else None, closed, received


def whole(received):
    """Whether a complete response with a content length has arrived."""
    head, separator, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"(?im)^content-length: *(\d+)", head)
    return bool(separator and length and len(body) >= int(length.group(1)))


if __name__ == "__main__":
    with Server() as fresh:
        ran = subprocess.run(sys.argv[1:], env={**os.environ, "OUTSIDE_URL": f"http://127.0.0.1:{fresh.port}/mcp"}, check=False)
        fresh.verify()
    sys.exit(ran.returncode)
