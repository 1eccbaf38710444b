"""One retry-and-crash script against Checkpoint and its peers: `cargo xtask compare`, or

    compare.py --server target/release/wf-cli [--only NAME]… [--callers 8] [--steps 50] [--kills 4] [--seed 1] [--full] [--out FOLDER]
    compare.py --server … --render --out FOLDER     only writes the page again from comparison.json
    compare.py --server … --check     the short self-check: Checkpoint, and the server that spoils readings on purpose

script.py is what the callers do, audit.py what is counted, peers/ the adapters, page.py the table in docs/comparison.md.
Exit code 1 if Checkpoint lost, doubled or misplaced a reading, or if the count of the planted faults is not what was planted.
"""
import argparse
import asyncio
import datetime
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import time
import traceback
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import audit
import page
from peers import PEERS
from peers.planted import Planted
from places import ROOT, Missing, Places
from script import STEPS_OF_A_VISIT, Script, Settings
from servers import NotReady


def arguments():
    parser = argparse.ArgumentParser(description="One retry-and-crash script against Checkpoint and its peers.")
    parser.add_argument("--server", required=True, type=lambda path: Path(path).resolve(), help="the binary of Checkpoint")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only peers whose name contains this (repeatable)")
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--steps", type=int, help="readings a caller records, a multiple of ten (50; 500 with --full)")
    parser.add_argument("--kills", type=int, help="kill -9 in the middle of the work (4; 20 with --full)")
    parser.add_argument("--seed", type=int, default=20_261_130)
    parser.add_argument("--full", action="store_true", help="500 steps and 20 kills")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="writes comparison.json and the table of comparison.md there")
    parser.add_argument("--render", action="store_true", help="runs nothing: the page again from comparison.json")
    parser.add_argument("--check", action="store_true", help="Checkpoint and the planted faults only, 4 callers of 20 steps and 2 kills")
    options = parser.parse_args()
    small = (20, 2) if options.check else (500, 20) if options.full else (50, 4)
    options.steps, options.kills = options.steps or small[0], small[1] if options.kills is None else options.kills
    if options.check:
        options.callers = min(options.callers, 4)
    if options.steps % STEPS_OF_A_VISIT:
        parser.error(f"--steps: a multiple of {STEPS_OF_A_VISIT}")
    return options


def about(kind):
    return {name: getattr(kind, name) for name in ("name", "version", "licence", "purpose", "mapping", "key", "keeps")}


async def play(kind, places, settings):
    """The row of one peer; a reason instead of counts where it cannot run."""
    row = about(kind)
    folder = Path(tempfile.mkdtemp(prefix="comparison-"))
    peer = None
    try:
        peer = await asyncio.to_thread(kind, folder, places)
        row["version"] = peer.version
        began = time.monotonic()
        history, recorded = await Script(peer, settings).play()
        row.update(audit.count(history, recorded), seconds=round(time.monotonic() - began, 1), notes=refusals(history))
        if isinstance(peer, Planted):
            row["planted"] = await peer.planted()
    except (Missing, NotReady) as reason:
        row["not_run"] = str(reason)
    finally:
        if peer is not None:
            await peer.kill()
        if os.environ.get("COMPARISON_KEEP"):
            print(f"kept: {folder}", flush=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return row


def refusals(history):
    """The most frequent words of refusals, for whoever wonders what a peer said."""
    said = {}
    for attempt in history.attempts:
        if attempt.outcome == audit.REFUSED:
            text = f"{attempt.kind}{' again' if attempt.refused_again else ''}: " + re.sub(r"/tmp/\S+", "…", " ".join(attempt.answer.split()))[:160]
            said[text] = said.get(text, 0) + 1
    return dict(sorted(said.items(), key=lambda item: -item[1])[:4])


def faults(row):
    """What is wrong with a row that must be right: Checkpoint's own, and the planted one's."""
    if "planted" in row:
        reuse = row["key_reuse"]
        counted = {"lost": row["lost"], "doubled": row["doubled"], "misplaced": row["misplaced"], "reuse_recorded": reuse["recorded"],
                   "replaced": reuse["replaced"]}
        wrong = [] if counted == row["planted"] else [f"planted {row['planted']}, counted {counted}"]
        # Of the two kinds about keys a short run may have none.
        return wrong + [f"no fault of the kind {kind} was planted" for kind in ("lost", "doubled", "misplaced") if counted[kind] == 0]
    if row["name"] not in ("Checkpoint", Planted.name):
        return []
    if "not_run" in row:
        return [row["not_run"]]
    wrong = [f"{row[kind]} {kind}" for kind in ("lost", "doubled", "misplaced", "strange", "retries_refused", "two_at_once") if row[kind]]
    reuse = row["key_reuse"]
    if reuse["refused"] != reuse["tried"] or not reuse["tried"]:
        wrong.append(f"keys used again: {reuse}")
    if not row["faults"]["no_answer"] or not row["faults"]["answers_lost"]:
        wrong.append(f"no call met a kill, or no answer was lost: {row['faults']}")
    return wrong


async def main():
    options = arguments()
    settings = Settings(options.callers, options.steps, options.kills, options.seed)
    places = Places(options.server, options.callers)
    kinds = [kind for kind in [*PEERS, Planted] if not options.only or any(word.lower() in kind.name.lower() for word in options.only)]
    if options.check:
        kinds = [PEERS[0], Planted]
    if options.render:
        page.render(options.out)
        return 0
    print(f"{settings}", flush=True)
    wrong = []
    for kind in kinds:
        # The control needs no crash in the middle to be a control.
        chosen = replace(settings, kills=0) if options.check and kind is Planted else settings
        try:
            row = await play(kind, places, chosen)
        except Exception as fault:
            traceback.print_exc()
            row = {**about(kind), "not_run": f"the script broke: {fault!r}"}
            wrong.append(f"{kind.name}: {fault!r}")
        print(page.line(row), flush=True)
        wrong += [f"{kind.name}: {what}" for what in faults(row)]
        if options.out:
            row["made_at"] = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            row["settings"] = vars(chosen)
            page.write(options.out, row, {"machine": machine(), "profile": options.server.parent.name,
                                          "order": [known.name for known in [*PEERS, Planted]]})
    for what in wrong:
        print(f"FAIL {what}", flush=True)
    print(f"{len(kinds)} servers, {len(wrong)} faults", flush=True)
    return 1 if wrong else 0


def machine():
    return f"{os.cpu_count()} processors, {platform.system().lower()} {platform.release()}, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
