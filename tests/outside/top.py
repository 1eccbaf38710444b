"""`wf-cli top` in a terminal of its own (a pty): what is on the screen, the keys, and the terminal given back at every end."""
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

from harness import Server, binary, case, clean_environment, cli, run_cases
from client import Client
import pump

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"

server = Server().start()
client = Client(server)
held = pump.start(client)
url = f"http://127.0.0.1:{server.port}/metrics"


class Terminal:
    """The command with a terminal of this size; `text` is all that it wrote."""

    def __init__(self, *arguments, rows=45, columns=150, **environment):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.text = b""
        self.process = subprocess.Popen(
            [binary(), "top", "--config", server.config, *arguments], stdin=self.slave, stdout=self.slave, stderr=self.slave,
            cwd=server.folder, env={**clean_environment(), "TERM": "xterm-256color", **environment}, start_new_session=True)

    def read(self, wait):
        if select.select([self.master], [], [], wait)[0]:
            self.text += os.read(self.master, 65536)

    def until(self, wanted, since=0, deadline=20):
        end = time.monotonic() + deadline
        while wanted not in self.text[since:]:
            assert time.monotonic() < end, f"no {wanted!r} on the screen: {self.text[since:][-2000:]!r}"
            self.read(0.1)
        return self

    def press(self, keys):
        since = len(self.text)
        os.write(self.master, keys)
        return since

    def ended(self, deadline=20):
        end = time.monotonic() + deadline
        while self.process.poll() is None:
            assert time.monotonic() < end, "it goes on"
            self.read(0.05)
        self.read(0.1)
        assert self.text.rfind(LEAVE) > self.text.rfind(ENTER) >= 0, self.text[-300:]
        after = termios.tcgetattr(self.slave)
        assert after[:4] == self.before[:4], "the terminal is not as it was"
        os.close(self.master)
        os.close(self.slave)
        return self.process.returncode


@case("the screen shows who holds what and the calls of the server; keys choose a pane, q ends and gives the terminal back")
def screen():
    terminal = Terminal()
    # What is drawn between two words is no blank but a move of the cursor.
    terminal.until(b"PUMP-").until(b"start_workflow").until(b"writes")
    since = terminal.press(b"?")
    terminal.until(b"PgDn", since)
    terminal.press(b"\x1b[C")
    since = terminal.press(b"3")
    terminal.until(b"FENCE", since)
    terminal.press(b"q")
    assert terminal.ended() == 0


@case("SIGTERM, SIGHUP and Ctrl-C give the terminal back and end with 0")
def signals():
    for end in (lambda t: t.process.send_signal(signal.SIGTERM), lambda t: t.process.send_signal(signal.SIGHUP), lambda t: t.press(b"\x03")):
        terminal = Terminal("--interval", "60")
        terminal.until(b"Callers")
        end(terminal)
        assert terminal.ended() == 0


@case("a terminal that is not given back is seen, as after a kill that nobody can catch")
def control():
    terminal = Terminal()
    terminal.until(b"Callers")
    terminal.process.kill()
    try:
        terminal.ended()
    except AssertionError:
        return
    raise AssertionError("nobody saw it")


@case("NO_COLOR is honoured, and a server that is away is said to be")
def no_colour():
    terminal = Terminal("--metrics-url", "http://127.0.0.1:9/metrics", NO_COLOR="1")
    terminal.until(b"answers:").until(b"127.0.0.1:9")
    terminal.press(b"q")
    assert terminal.ended() == 0
    for colour in (31, 32, 33):
        assert b"\x1b[%dm" % colour not in terminal.text and b"\x1b[38;5;%dm" % (colour - 30) not in terminal.text, terminal.text


@case("without a terminal it says how to go on, and --once and --json print one look")
def once():
    code, text = cli("top", "--config", server.config)
    assert code == 2 and "--once" in text, (code, text)
    code, text = cli("top", "--config", server.config, "--once", "--metrics-url", url, "--metrics-url", "http://127.0.0.1:9")
    assert code == 0 and "PUMP-" in text and "no answer" in text and "\x1b" not in text, (code, text)
    code, text = cli("top", "--config", server.config, "--json", "--metrics-url", url, "--metrics-url", url)
    look = json.loads(text)
    assert code == 0 and look["open"] == 1 and look["locks"][0]["asset_id"].startswith("PUMP-"), look
    assert look["callers"][0]["open"] == 1 and not any(look["more"].values()), look
    assert [s["metrics"]["checkpoint_store_ready"] for s in look["servers"]] == [1, 1], look


@case("a terminal that is small, and gets smaller while it draws, is no end")
def small():
    terminal = Terminal(rows=5, columns=20)
    terminal.until(b"Cal")
    since = len(terminal.text)
    fcntl.ioctl(terminal.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 2, 3, 0, 0))
    os.killpg(terminal.process.pid, signal.SIGWINCH)
    # A key that comes in the moment of the signal is read by crossterm with the key after it only: it looks at one of the two.
    terminal.until(b"\x1b[", since)
    terminal.press(b"\t\t ")
    terminal.press(b"q")
    assert terminal.ended() == 0


run_cases()
