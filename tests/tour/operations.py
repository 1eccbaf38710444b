"""docs/operations.md, run from top to bottom: every command in it, in one shell, in a home of its own.

A ```console block holds commands after `$ ` (`> ` continues one), and lines that they print: these must occur in that
order, `…` stands for anything, and what is not shown is not looked at. Each command must end with 0, unless the next one
shows its exit code with `echo $?`. A block below a line `*Not run here: REASON.*` is not run, but counted and listed.
A block below `*Run on an emulator of DynamoDB.*` is run in a shell of its own where $WF_AWS_ENDPOINT is one (`cargo xtask
aws`), and otherwise counted too. The commands run unchanged, but for the two ports of the page, which may be taken.
"""

import contextlib
import io
import os
import re
import signal
import subprocess
import tempfile
from pathlib import Path

import tour

ROOT = Path(__file__).resolve().parents[2]
PAGE = "docs/operations.md"
EMULATED = "*Run on an emulator of DynamoDB.*"
NOT_RUN = re.compile(r"^\*Not run here: (.+)\.\*$")
PORTS = ("8080", "9090")
SECONDS = 60
# What is shown and never run. Anything else that looks like a command has to be one.
SHOWN = {"toml", "yaml", "json"}
# What the commands find where they begin: a copy of the repository's, so that nothing can be changed in it.
BESIDE = ("deploy", "examples", "docs")


class Block:
    """One block: its commands, and why it is not run, if it is not."""

    def __init__(self, line, reason):
        self.line, self.reason, self.cells = line, reason, []


def blocks(page):
    """The console blocks in order; a ValueError for what nobody would run."""
    found, block, reason = [], None, None
    fence = None
    for number, line in enumerate(page.splitlines(), 1):
        if fence is None:
            if line.lstrip().startswith("```"):
                fence = line.strip()[3:]
                if fence not in SHOWN | {"console"}:
                    raise ValueError(f"{PAGE}:{number}: a block of `{fence}` is not run; write ```console")
                block = Block(number, reason) if fence == "console" else None
                reason = None
            elif told := NOT_RUN.match(line):
                reason = told.group(1)
            elif line == EMULATED:
                reason = EMULATED
            elif line.strip() and reason:
                raise ValueError(f"{PAGE}:{number}: a block must follow `Not run here`")
        elif line.strip() == "```":
            fence = None
            if block:
                found.append(block)
        elif block:
            cell = block.cells[-1] if block.cells else None
            if line.startswith("$ "):
                block.cells.append(tour.Cell(number, line[2:]))
            elif cell and cell.continues() and line.startswith("> "):
                cell.command += "\n" + line[2:]
            elif cell and cell.continues() and line == ">":
                cell.command += "\n"
            elif cell:
                cell.expected.append(line)
            else:
                raise ValueError(f"{PAGE}:{number}: a block must begin with a command")
    if fence is not None:
        raise ValueError(f"{PAGE}: the last block does not end")
    return found


def script(cells, mark):
    """One shell script; after each command a line says how it ended, and the next one can still ask with `$?`."""
    lines = ["trap 'kill -9 $(jobs -p) 2>/dev/null' EXIT", f"said() {{ local code=$?; echo; echo '{mark}' \"$1\" $code; return $code; }}"]
    for index, cell in enumerate(cells):
        lines += [cell.command, f"said {index}"]
    return "\n".join(lines) + "\n"


def run(cells, binary, emulator=None):
    """(exit code, lines) of each command that was reached, and what everything said on stderr."""
    mark = f"=== {os.urandom(8).hex()}"
    ports = {port: str(tour.free_port()) for port in PORTS}

    def ours(text):
        return re.sub(r"127\.0\.0\.1:(\d+)", lambda found: f"127.0.0.1:{ports.get(found[1], found[1])}", text)

    with tempfile.TemporaryDirectory(prefix="operations-") as home:
        checkout = Path(home, "mcp-workflow-adapter")
        checkout.mkdir()
        for name in BESIDE:
            Path(checkout, name).symlink_to(ROOT / name)
        file = Path(home, ".operations.sh")
        file.write_text(ours(script(cells, mark)), encoding="utf-8")
        environment = {
            "PATH": f"{binary.parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": home,
            "USER": "operator",
            "TMPDIR": home,
            "LC_ALL": "C.UTF-8",
        }
        if emulator:
            environment |= {"WF_BACKEND_AWS_ENDPOINT_URL": emulator, "WF_SERVER_LISTEN": f"127.0.0.1:{ports['8080']}"}
        out, errors = Path(home, ".out"), Path(home, ".err")
        # Files, not pipes: a server that outlives its shell must not hold the reader.
        with out.open("w") as stdout, errors.open("w") as stderr:
            shell = subprocess.Popen(
                ["bash", "--noprofile", "--norc", str(file)], cwd=checkout, env=environment,
                stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True)
            try:
                shell.wait(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                stderr.write(f"\nstopped after {SECONDS} seconds")
            finally:
                try:
                    os.killpg(shell.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                shell.wait()
        said = out.read_text(encoding="utf-8", errors="replace")
        told = errors.read_text(encoding="utf-8", errors="replace")
        for log in Path(home).glob("checkpoint/*.log"):
            told += f"\n--- {log.name}\n{log.read_text(encoding='utf-8', errors='replace')[-4000:]}"
    results, printed = [], []
    for line in said.splitlines():
        if line.startswith(mark):
            results.append((int(line.rsplit(" ", 1)[1]), printed))
            printed = []
        else:
            printed.append(line)
    back = {theirs: port for port, theirs in ports.items()}
    plain = [(code, [re.sub(r"127\.0\.0\.1:(\d+)", lambda found: f"127.0.0.1:{back.get(found[1], found[1])}", line) for line in lines])
             for code, lines in results]
    return plain, told


def missing(expected, printed):
    """The first expected line that does not occur after those before it; None when all do."""
    lines = iter(printed)
    for wanted in expected:
        if wanted == "…":
            continue
        if not any(tour.matches(wanted, line.rstrip()) for line in lines):
            return wanted
    return None


def fault_of(cell, asked, result):
    if result is None:
        return "it was not reached"
    code, printed = result
    if code != 0 and not asked:
        return "\n".join([f"it ended with {code} and printed:", *printed])
    wanted = missing(cell.expected, printed)
    return None if wanted is None else "\n".join(["it does not print:", wanted, "it printed:", *printed])


def check(page, binary, emulator=None):
    """Yields (name, fault or None) for every command that is run, and prints those that are not; with an emulator those
    that are run on it."""
    found = blocks(page)
    wanted = EMULATED if emulator else None
    cells = [cell for block in found if block.reason == wanted for cell in block.cells]
    for block in found:
        if block.reason not in (None, wanted) and not emulator:
            commands = "; ".join(cell.command.splitlines()[0] for cell in block.cells)
            print(f"NOT RUN {PAGE}:{block.line}: {block.reason.strip('*.')}: {commands[:150]}")
    results, told = run(cells, binary, emulator)
    faulty = False
    for index, cell in enumerate(cells):
        asked = index + 1 < len(cells) and "$?" in cells[index + 1].command
        fault = fault_of(cell, asked, results[index] if index < len(results) else None)
        faulty |= fault is not None
        yield f"{PAGE}:{cell.line}: {cell.command.splitlines()[0][:90]}", fault
    yield f"{PAGE}: the run says nothing else", told if faulty else None
    if not cells:
        yield f"{PAGE}: it has commands", "it has none"
    if not emulator:
        skipped = sum(len(block.cells) for block in found if block.reason is not None)
        print(f"{len(cells)} commands of {PAGE} run, {skipped} not")


def controls(binary):
    """Yields (name, fault or None): each rule is broken once in a copy of a page, and the run must turn red."""
    page = "```console\n$ wf-cli --version\nwf-cli …\n$ false\n$ echo $?\n1\n```\n"

    def faults(text):
        with contextlib.redirect_stdout(io.StringIO()):
            return [fault for _, fault in check(text, binary) if fault]

    told = faults(page)
    yield "control: a page whose commands are right is accepted", None if not told else str(told)
    for what, wrong in (
        ("a command that fails", page.replace("--version", "--verison")),
        ("a line that is not printed", page.replace("wf-cli …\n", "checkpoint …\n")),
        ("a failure that nobody asks about", page.replace("$ echo $?\n1\n", "$ echo 1\n1\n")),
        ("lines in another order", page.replace("$ false", "$ echo a; echo b\nb\na\n$ false")),
    ):
        yield f"control: {what} is found", None if faults(wrong) else "it was not"
    runbook = "### CheckpointX\n**Means** a **Look** b **Do** c **Over** d\n"
    alert = "      - alert: CheckpointX\n          runbook_url: docs/operations.md#checkpointx\n"
    yield "control: a whole runbook is accepted", complete(alert, runbook)
    for what, alerts, text in (("an alert without runbook", alert, "x"), ("a runbook without alert", alert, runbook.replace("X", "Y")),
                               ("a runbook that does not say when it is over", alert, runbook.replace("**Over**", ""))):
        yield f"control: {what} is found", None if complete(alerts, text) else "it was not"
    for what, wrong in (("another kind of block", "```sh\nwf-cli serve\n```\n"),
                        ("a reason without a block", "*Not run here: no reason.*\n\ntext\n")):
        try:
            blocks(wrong)
            yield f"control: {what} is found", "it was not"
        except ValueError:
            yield f"control: {what} is found", None


def complete(alerts, page):
    """Every alert has its runbook, and every runbook that is named like an alert has its alert."""
    named = set(re.findall(r"^\s*- alert: (\w+)$", alerts, re.MULTILINE))
    headings = set(re.findall(r"^### (Checkpoint\w+)$", page, re.MULTILINE))
    urls = set(re.findall(r"runbook_url: docs/operations\.md#(\w+)", alerts))
    wrong = [] if named else ["there are no alerts"]
    wrong += [f"no runbook ### {name}" for name in sorted(named - headings) if name.lower() in urls]
    wrong += [f"no alert {name}" for name in sorted(headings - named)]
    parts = ("**Means**", "**Look**", "**Do**", "**Over**")
    for name in sorted(headings):
        text = page.split(f"### {name}\n", 1)[1].split("\n##", 1)[0]
        wrong += [f"{name} does not say: {part}" for part in parts if part not in text]
    return "\n".join(wrong) or None
