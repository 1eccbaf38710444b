"""What a comparison found, as JSON and as the tables of docs/comparison.md between two markers."""
import json

from peers import NOT_TRIED

BEGIN, END = "<!-- comparison: written by tests/comparison/compare.py, do not edit -->", "<!-- /comparison -->"


def line(row):
    """One row for whoever watches."""
    if "not_run" in row:
        return f"{row['name']}: not run: {' '.join(row['not_run'].split())[:1500]}"
    reuse = row["key_reuse"]
    said = "".join(f"\n    {times} × {text}" for text, times in row["notes"].items())
    return (f"{row['name']} {row['version']}: {row['acknowledged']} acknowledged; lost {row['lost']}, doubled {row['doubled']}, misplaced "
            f"{row['misplaced']}; key reuse {reuse}; retries refused {row['retries_refused']}, refused yet recorded "
            f"{row['refused_yet_recorded']}, two at once {row['two_at_once']}; {row['faults']}; {row['seconds']} s{said}")


def write(folder, row, result):
    """comparison.json, and the tables of comparison.md. What an earlier run found of other peers stays."""
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "comparison.json"
    before = json.loads(data.read_text())["rows"] if data.exists() else []
    rows = {known["name"]: known for known in [*before, row] if known["name"] in result["order"]}
    result["rows"] = sorted(rows.values(), key=lambda known: result["order"].index(known["name"]))
    data.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    render(folder)


def render(folder):
    """comparison.md from comparison.json."""
    page = folder / "comparison.md"
    text = page.read_text() if page.exists() else f"# Comparison\n\n{BEGIN}\n{END}\n"
    head, rest = text.split(BEGIN, 1)
    page.write_text(f"{head}{BEGIN}\n\n{tables(json.loads((folder / 'comparison.json').read_text()))}\n{END}{rest.split(END, 1)[1]}")


def tables(result):
    ran = [row for row in result["rows"] if "not_run" not in row]
    dates = sorted({row["made_at"][:10] for row in ran})
    lines = [
        f"{' to '.join(dict.fromkeys([*dates[:1], *dates[-1:]]))}; {result['machine']}; Checkpoint of the profile {result['profile']}.",
        "",
        "| | callers × readings, kills | acknowledged | lost | doubled | misplaced | key reused with another payload | retry refused, though recorded | two at once on an asset |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [counts(row) for row in ran if "planted" not in row]
    lines += ["", "The negative control, a server that spoils readings on purpose:", "",
              "| | lost | doubled | misplaced | reused keys recorded | of these replaced the first |", "|---|---|---|---|---|---|"]
    for row in ran:
        if "planted" in row:
            planted, reuse = row["planted"], row["key_reuse"]
            lines += ["| planted | " + " | ".join(str(planted[kind]) for kind in ("lost", "doubled", "misplaced", "reuse_recorded", "replaced")) + " |",
                      f"| counted | {row['lost']} | {row['doubled']} | {row['misplaced']} | {reuse['recorded']} | {reuse['replaced']} |"]
    lines += ["", "## What each is for, and how it did the job", "", "| | version, licence | is for | did it so | repeats with |", "|---|---|---|---|---|"]
    for row in ran:
        if "planted" not in row:
            lines.append(f"| {row['name']} | {row['version']}, {row['licence']} | {row['purpose']} | {row['mapping']} | {row['key'] or 'the same arguments'} |")
    lines += ["", "## Faults that each met", "", "| | kills | calls without an answer | answers thrown away | sent twice at once | second devices | keys reused | seconds |",
              "|---|---|---|---|---|---|---|---|"]
    for row in ran:
        if "planted" not in row:
            met = row["faults"]
            lines.append(f"| {row['name']} | {met['kills']} | {met['no_answer']} | {met['answers_lost']} | {met['sent_twice']} | {met['rivals']} | "
                         f"{row['key_reuse']['tried']} | {row['seconds']:.0f} |")
    missing = [(row["name"], " ".join(row["not_run"].split())[:300]) for row in result["rows"] if "not_run" in row]
    lines += ["", "## Not run", "", "| | why |", "|---|---|"]
    lines += [f"| {name} | {reason} |" for name, reason in [*missing, *NOT_TRIED]]
    return "\n".join(lines) + "\n"


def counts(row):
    reuse = row["key_reuse"]
    said = {"refused": "refused", "first_answer": "the first answer again", "recorded": "recorded"}
    keys = ", ".join(f"{text} {reuse[kind]}" for kind, text in said.items() if reuse[kind]) or "no key"
    if reuse["replaced"]:
        keys += f" (replaced the first {reuse['replaced']})"
    lost = str(row["lost"]) if row.get("keeps", True) else f"{row['lost']} (keeps none)"
    size = row["settings"]
    cells = [row["name"], f"{size['callers']} × {size['steps']}, {size['kills']} + 1", row["acknowledged"], lost, row["doubled"], row["misplaced"], keys, row["retries_refused"], row["two_at_once"]]
    return "| " + " | ".join(str(cell) for cell in cells) + " |"

