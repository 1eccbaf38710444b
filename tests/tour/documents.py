"""What the documents say about the repository: numbers, names of tests, links, the two commands of the quick start."""

import re
from pathlib import Path

CONSTANT = re.compile(r"^pub const (\w+): \w+ = ([0-9_ *]+);$", re.MULTILINE)
ROW = re.compile(r"^\| `(\w+)` \| ([0-9,]+) \|", re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
COMMANDS = ("cargo run --release -p wf-cli -- serve", "cargo xtask ci")
TOLD = ("start_workflow", "submit_step", '"duplicate": true', "kill -9 $server", "get_status", "resolve_block", "finish_workflow", "token issue", "correct_step", "sue sign_off")


def product(expression):
    """`16 * 1024` and `1_000`: what the constants are written with."""
    value = 1
    for factor in expression.split("*"):
        value *= int(factor.replace("_", "").strip())
    return value


def limits(root):
    """docs/limits.md has exactly the constants of wf_core::limits, with their numbers."""
    code = dict(CONSTANT.findall(Path(root, "crates/wf-core/src/limits.rs").read_text(encoding="utf-8")))
    code = {name: product(expression) for name, expression in code.items()}
    rows = ROW.findall(Path(root, "docs/limits.md").read_text(encoding="utf-8"))
    page = {name: int(value.replace(",", "")) for name, value in rows}
    if not code:
        return "no constant found in crates/wf-core/src/limits.rs"
    wrong = [
        f"{name}: the code says {code.get(name)}, docs/limits.md says {page.get(name)}"
        for name in sorted(code.keys() | page.keys())
        if code.get(name) != page.get(name)
    ]
    return "\n".join(wrong) or None


def guarantees(root, readme):
    """Every test that the table of guarantees names is there."""
    table = readme.partition("<!-- guarantees -->")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    sources = "\n".join(
        path.read_text(encoding="utf-8")
        for folder in ("crates", "examples")
        for path in Path(root, folder).rglob("*.rs")
    )
    wrong = [] if rows else ["no row found under <!-- guarantees -->"]
    for row in rows:
        names = re.findall(r"`([^`]+)`", row.split("|")[2])
        if not names:
            wrong.append(f"no test is named: {row}")
        for name in names:
            there = Path(root, name).is_file() if "/" in name else re.search(rf"\bfn {name}\b", sources)
            if not there:
                wrong.append(f"there is no {name}")
    return "\n".join(wrong) or None


def links(root, page):
    """Every relative link of a page leads somewhere."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    wrong = []
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        if not (page.parent / target).exists():
            wrong.append(f"{page.relative_to(root)} links to {target}, which is not there")
    return "\n".join(wrong) or None


def linked(page):
    """The files that a page links to."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return {(page.parent / target).resolve() for target in LINK.findall(text) if not re.match(r"[a-z]+:", target)}


def orphans(root):
    """Every document is reached from README.md by links, and docs/README.md names every page of its folder."""
    reached, ahead = set(), [(root / "README.md").resolve()]
    while ahead:
        page = ahead.pop()
        if page not in reached and page.suffix == ".md" and page.is_file():
            ahead += linked(page)
        reached.add(page)
    pages = {path.resolve() for path in root.glob("docs/**/*.md") if "template" not in path.name}
    wrong = [f"nothing leads from README.md to {page.relative_to(root.resolve())}" for page in sorted(pages - reached)]
    index = root / "docs/README.md"
    named = linked(index) if index.is_file() else set()
    top = {path.resolve() for path in root.glob("docs/*.md")} - {index.resolve()}
    wrong += [f"docs/README.md does not name {page.name}" for page in sorted(top - named)]
    return "\n".join(wrong) or None


def quick_start(readme):
    """The two commands stand there, each as a line of its own; the tour shows what it promises."""
    lines = {line.strip() for line in readme.splitlines()}
    wrong = [f"not in README.md: {command}" for command in COMMANDS if command not in lines]
    wrong += [f"the tour does not show {told}" for told in TOLD if told not in readme]
    return "\n".join(wrong) or None


def check(root, readme):
    """Yields (name, fault or None) for every document."""
    yield "docs/limits.md agrees with wf_core::limits", limits(root)
    yield "every guarantee of README.md has its test", guarantees(root, readme)
    yield "README.md has the two commands, and a whole tour", quick_start(readme)
    yield "every document is reached from README.md", orphans(root)
    pages = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("examples/*/*.md"), *root.glob("crates/*/README.md")]
    for page in sorted(pages):
        yield f"links of {page.relative_to(root)}", links(root, page)
