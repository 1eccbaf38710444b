"""Entry: runs the tour and the checks of the documents, after showing that each of them can fail. Beside an emulator
($WF_AWS_ENDPOINT) only what the documents run on one."""

import os
import sys
import tempfile
from pathlib import Path

import documents
import operations
import tour

ROOT = Path(__file__).resolve().parents[2]


def controls(binary):
    """Yields (name, fault or None): a check that passes on a wrong document is worth nothing."""
    lying = f"{tour.MARK}\n```console\n$ wf-cli --version\nwf-cli none\n```\n"
    told = [fault for _, fault in tour.check(lying, binary)]
    yield "control: a wrong answer in the tour is found", None if all(told) else "it was not"
    honest = f"{tour.MARK}\n```console\n$ echo a; echo b\na\n…\n```\n"
    told = [fault for _, fault in tour.check(honest, binary)]
    yield "control: a right answer is accepted", None if not any(told) else str(told)
    with tempfile.TemporaryDirectory(prefix="tour-") as folder:
        root = Path(folder)
        (root / "crates/wf-core/src").mkdir(parents=True)
        (root / "crates/wf-core/src/limits.rs").write_text("pub const A_MAX: usize = 2 * 1_000;\n", encoding="utf-8")
        (root / "docs").mkdir()
        page = root / "docs/limits.md"
        page.write_text("| `A_MAX` | 2,000 |\n[x](nowhere.md)\n", encoding="utf-8")
        yield "control: a right limit is accepted", documents.limits(root)
        yield "control: a dead link is found", None if documents.links(root, page) else "it was not"
        (root / "README.md").write_text("[a](docs/README.md)\n", encoding="utf-8")
        (root / "docs/README.md").write_text("[b](limits.md)\n", encoding="utf-8")
        yield "control: a page that is reached is accepted", documents.orphans(root)
        (root / "docs/README.md").write_text("b\n", encoding="utf-8")
        told = documents.orphans(root) or ""
        yield "control: an orphan is found", None if "nothing leads" in told and "does not name" in told else told or "it was not"
        page.write_text("| `A_MAX` | 2,001 |\n", encoding="utf-8")
        yield "control: a wrong limit is found", None if documents.limits(root) else "it was not"
        table = "<!-- guarantees -->\n| guarantee | shown by |\n| x | `no_such_test` |\n"
        yield "control: an absent test is found", None if documents.guarantees(root, table) else "it was not"


def main():
    binary = Path(sys.argv[1]).resolve()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    page = (ROOT / operations.PAGE).read_text(encoding="utf-8")
    passed = failed = 0
    alerts = (ROOT / "deploy/prometheus/alerts.yaml").read_text(encoding="utf-8")
    runbooks = ("every alert has its runbook, and says all four things", operations.complete(alerts, page))
    emulator = os.environ.get("WF_AWS_ENDPOINT")
    every = ((operations.check(page, binary, emulator),) if emulator else
             (controls(binary), operations.controls(binary), documents.check(ROOT, readme), (runbooks,),
              tour.check(readme, binary), operations.check(page, binary)))
    for checks in every:
        for name, fault in checks:
            if fault is None:
                passed += 1
                print(f"PASS {name}")
            else:
                failed += 1
                print(f"FAIL {name}\n{fault}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
