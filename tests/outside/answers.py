"""What every tool answer must look like, whoever asked: schemas, envelope, error table, speech.

The shape itself is described in docs/result.schema.json; the rules that a schema cannot say stand here.
Used by harness.py (each answer of each test) and agent.py (the speech rules).
"""
import json
import os
import re

from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema.validators import validator_for

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FULL_SCHEMA = os.path.join(REPOSITORY, "docs", "result.schema.json")

STATES = {"CREATED", "RUNNING", "BLOCKED", "COMPLETED"}
OUTCOMES = set(
    "view list none disambiguation needs_input needs_confirmation not_recorded verdict started joined recorded "
    "out_of_range corrected skipped noted blocked transferred finished resolved error".split()
)
# The closed list of error codes and what a caller may do about each.
RETRY = {
    "VALIDATION_ERROR": "changed_call", "IDEMPOTENCY_CONFLICT": "changed_call", "BACKEND_UNAVAILABLE": "same_call",
    "VERSION_CONFLICT": "changed_call", "WORKFLOW_NOT_FOUND": "no", "PROCEDURE_NOT_FOUND": "changed_call",
    "ASSET_LOCKED": "no", "LOCK_LOST": "no", "INVALID_TRANSITION": "no", "STEP_NOT_OPEN": "changed_call",
    "STEP_ALREADY_RECORDED": "changed_call", "IMPLAUSIBLE_VALUE": "changed_call", "UNIT_MISMATCH": "changed_call",
    "TOO_EARLY": "same_call", "REASON_REQUIRED": "changed_call", "NOT_ALLOWED": "no",
    "DECISION_NOT_ALLOWED": "changed_call", "LIMIT_EXCEEDED": "changed_call", "INTERNAL": "same_call",
}
DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def first_error(validator, instance):
    """The first violation as one line, or None."""
    for error in validator.iter_errors(instance):
        return f"{'/'.join(map(str, error.absolute_path)) or '(top)'}: {error.message[:200]}"
    return None


class Schemas:
    """The validators of one server: each tool's output schema under two drafts, and the full result schema."""

    def __init__(self, tools):
        assert os.path.exists(FULL_SCHEMA), "docs/result.schema.json is missing: it is part of the repository"
        with open(FULL_SCHEMA, encoding="utf-8") as file:
            full = json.load(file)
        dialect = validator_for(full, default=Draft202012Validator)
        dialect.check_schema(full)
        self.full = dialect(full)
        self.tools = {}
        for tool in tools:
            output = tool.get("outputSchema")
            assert output, f"{tool['name']} has no outputSchema"
            for draft in (Draft7Validator, Draft202012Validator):
                draft.check_schema(output)
            self.tools[tool["name"]] = [draft(output) for draft in (Draft7Validator, Draft202012Validator)]

    def check(self, tool, out):
        for validator in self.tools[tool]:
            fault = first_error(validator, out)
            assert fault is None, f"{tool}: {type(validator).__name__} refuses the answer at {fault}: {out}"
        fault = first_error(self.full, out)
        assert fault is None, f"{tool}: docs/result.schema.json refuses the answer at {fault}: {out}"


def check_envelope(tool, out):
    """The rules on one structured answer that hold for every tool."""
    def must(condition, rule):
        assert condition, f"{tool}: {rule}: {json.dumps(out)[:1500]}"

    must(out["outcome"] in OUTCOMES, "unknown outcome")
    must(isinstance(out["ok"], bool) and isinstance(out["duplicate"], bool), "ok and duplicate are booleans")
    must(out["ok"] == (out["outcome"] != "error"), "ok is false for errors only")
    must(("error" in out) == (not out["ok"]), "an error object comes with errors only")
    must(0 < len(out["speech"]) <= 240, "speech has 1 to 240 characters")
    must(None not in out.values(), "absent keys are omitted, not null")
    if not out["ok"]:
        error = out["error"]
        must(error["code"] in RETRY, "error code is not in the closed list")
        must(error["retry"] == RETRY[error["code"]], "retry differs from the error table")
        must(bool(error["message"]), "an error says what is wrong")
        must(not out["duplicate"], "a refusal is never a duplicate")
    workflow = out.get("workflow")
    if workflow:
        must(workflow["state"] in STATES, "state is one of four")
        must(isinstance(workflow["revision"], int) and workflow["revision"] >= 1, "revision counts events")
        must(("result" in workflow) == (workflow["state"] == "COMPLETED"), "a result comes with COMPLETED only")
        if out["ok"] and workflow["state"] != "COMPLETED" and out["outcome"] != "verdict":
            key = out.get("next_idempotency_key")
            must(key and len(key) <= 128 and key.isascii() and key.isprintable(), "no usable next_idempotency_key")
    for bound in ("min", "max"):
        if bound in out.get("step", {}):
            must(DECIMAL.fullmatch(out["step"][bound]), f"step.{bound} is a decimal string")
    if workflow and workflow["state"] == "BLOCKED" and out["ok"]:
        must(out.get("blocks"), "a blocked workflow names its open blocks")
    if out["outcome"] == "needs_confirmation":
        must({"token", "read_back"} <= set(out["confirm"]), "a confirmation has a token and words to read back")
    must(len(out.get("candidates", [])) <= 5, "at most five candidates")
    history = [event["seq"] for event in out.get("history", [])]
    must(len(history) <= 50 and history == list(range(history[0], history[0] + len(history))) if history else True,
         "history is at most 50 events, oldest first, without gaps")


# Speech.

ID_KEYS = {"id", "workflow_id", "procedure_id", "step_id", "code", "token", "digest", "next_idempotency_key"}
PATTERNS = {
    "a UUID": re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-", re.I),
    "a hexadecimal id": re.compile(r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{12,}\b", re.I),
    "an identifier with underscores": re.compile(r"[A-Za-z0-9]_[A-Za-z0-9]"),
    "JSON": re.compile(r'[{}\[\]]|":'),
    "a line break or control character": re.compile(r"[\x00-\x1f\x7f]"),
}


def walk(node, key=None):
    """Every (key, scalar) of a JSON document."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield from walk(value, name)
    elif isinstance(node, list):
        for value in node:
            yield from walk(value, key)
    else:
        yield key, node


def spoken(word, speech):
    return re.search(rf"(?<![\w']){re.escape(word)}(?![\w])", speech) is not None


def speech_faults(out, tool_names):
    """What is wrong with the speech of an answer, as a list of sentences."""
    speech, faults = out["speech"], []
    if not 0 < len(speech) <= 240:
        faults.append(f"{len(speech)} characters")
    faults += [f"contains {what}" for what, pattern in PATTERNS.items() if pattern.search(speech)]
    faults += [f"names the tool {name}" for name in tool_names if name in speech]
    for key, value in walk(out):
        if not isinstance(value, str) or not value:
            continue
        # An id that is a plain word ("passed") may be what people say; one with digits, dashes or capitals may not.
        if key in ID_KEYS and not re.fullmatch(r"[a-z]+( [a-z]+)*", value) and spoken(value, speech):
            faults.append(f"names the id {value}")
        if key == "unit" and not re.fullmatch(r"[a-z]{3,}", value) and spoken(value, speech):
            faults.append(f"does not spell out the unit {value}")
    for options in option_lists(out):
        named = {word for word in options if len(word) > 2 and spoken(word.lower(), speech.lower())}
        if len(named) > 3:
            faults.append(f"names {len(named)} options: {sorted(named)}")
    if speech.count("?") > 1:
        faults.append("asks more than one thing")
    return faults


def option_lists(out):
    """The lists a person may be asked to choose from, each as its spoken words."""
    yield {c["label"] for c in out.get("candidates", []) if c.get("label")}
    yield {c["say"] for c in out.get("step", {}).get("choices", [])}
    for block in out.get("blocks", []):
        yield {d["say"] for d in block.get("decisions", [])}
    for name in ("reasons", "results"):
        yield {o["say"] for o in out.get("workflow", {}).get(name, [])}
