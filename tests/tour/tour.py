"""The README's tour: the console blocks under `<!-- tour -->`, run in one shell and compared line by line.

A line that starts with `$ ` is a command, `> ` continues it, everything else is what it prints on stdout. `…` stands for
anything within a line. The commands run unchanged: the port comes from the environment, the binary from PATH.
"""

import os
import re
import signal
import socket
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

MARK = "<!-- tour -->"
SECONDS = 120
HERE = re.compile(r"<<'(\w+)'")


@dataclass
class Cell:
    """One command and what the README says it prints."""

    line: int
    command: str
    expected: list[str] = field(default_factory=list)

    def continues(self):
        """A command goes on after a backslash, and until its function or its here-document is closed."""
        if here := HERE.search(self.command):
            return self.command.splitlines()[-1] != here.group(1)
        return self.command.endswith("\\") or ("() {" in self.command and not self.command.endswith("}"))


def cells(readme):
    """The commands of every marked block, in order."""
    found, state = [], "text"
    for number, line in enumerate(readme.splitlines(), 1):
        if state == "text":
            state = "marked" if line.strip() == MARK else "text"
        elif state == "marked":
            if line != "```console":
                raise ValueError(f"README.md:{number}: {MARK} must stand right above a ```console block")
            state = "block"
        elif line == "```":
            state = "text"
        elif line.startswith("$ "):
            found.append(Cell(number, line[2:]))
        elif line.startswith("> ") and found and found[-1].continues():
            found[-1].command += "\n" + line[2:]
        elif found:
            found[-1].expected.append(line)
        else:
            raise ValueError(f"README.md:{number}: a block must begin with a command")
    if state != "text":
        raise ValueError("README.md: the last tour block does not end")
    return found


def matches(expected, printed):
    """Is this line what the README says, with `…` for anything?"""
    pattern = ".*".join(re.escape(part) for part in expected.split("…"))
    return re.fullmatch(pattern, printed) is not None


def script(all_cells, mark):
    """One shell script that runs every command and says where each begins and ends."""
    lines = ['trap \'kill -9 $(jobs -p) 2>/dev/null\' EXIT']
    for index, cell in enumerate(all_cells):
        lines += [f"echo '{mark} {index}'", cell.command]
    lines.append(f"echo '{mark} {len(all_cells)}'")
    return "\n".join(lines) + "\n"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(all_cells, binary):
    """What each command printed, and what everything said on stderr."""
    mark = f"=== {os.urandom(8).hex()}"
    with tempfile.TemporaryDirectory(prefix="tour-") as folder:
        # The tour begins in the folder of the repository, of which it uses only this.
        Path(folder, "examples").symlink_to(Path(__file__).resolve().parents[2] / "examples")
        file = Path(folder, "tour.sh")
        file.write_text(script(all_cells, mark), encoding="utf-8")
        environment = {
            "PATH": f"{binary.parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": folder,
            "TMPDIR": folder,
            "LC_ALL": "C.UTF-8",
            "WF_SERVER_LISTEN": f"127.0.0.1:{free_port()}",
        }
        shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc", str(file)],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, err = shell.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)
            out, err = shell.communicate()
            err += f"\nstopped after {SECONDS} seconds"
        for log in Path(folder).glob("*/serve.log"):
            err += f"\n--- {log.name}\n{log.read_text(encoding='utf-8')}"
    printed = [[] for _ in range(len(all_cells) + 1)]
    current = None
    for line in out.splitlines():
        if line.startswith(mark):
            current = int(line.rsplit(" ", 1)[1])
        elif current is not None:
            printed[current].append(line)
    return printed[:-1], current == len(all_cells), err


def compare(cell, printed):
    """None when the command printed what the README says, else how they differ."""
    same = len(cell.expected) == len(printed) and all(map(matches, cell.expected, printed))
    if same:
        return None
    return "\n".join(["the README says:", *cell.expected, "it printed:", *printed])


def check(readme, binary):
    """Yields (name, fault or None) for every command of the tour."""
    all_cells = cells(readme)
    printed, finished, err = run(all_cells, binary)
    faulty = False
    for cell, lines in zip(all_cells, printed):
        fault = compare(cell, lines)
        faulty |= fault is not None
        yield f"README.md:{cell.line}: {cell.command.splitlines()[0][:90]}", fault
    end = None if finished else "the shell did not get to the end"
    yield "the tour ends", f"{end or 'see above'}\n{err}" if faulty or end else None
