"""What became of every reading: the callers' history beside what the peer says it has, after a last kill -9.

Pure: no server is needed. Counts
- lost: the caller was told that it is recorded, and it is nowhere;
- doubled: recorded again where it belongs;
- replaced: it was recorded, until the key was used again with another payload;
- misplaced: recorded under another step, or in another run, than the caller named.
"""
from collections import Counter
from dataclasses import dataclass, field

ACKNOWLEDGED, REFUSED = "acknowledged", "refused"
# What a call is: the reading of a step; a second device's other reading of the same step; the key of a recorded reading
# with another payload.
READING, RIVAL, REUSE = "reading", "rival", "reuse"


@dataclass
class Attempt:
    """One reading that a caller tried to record, however often it sent it. Its value is no other's."""

    run: str
    step: int
    value: str
    key: str = ""
    kind: str = READING
    outcome: str = ""
    answer: str = ""
    # Calls beyond the first, by what happened to the first.
    repeated: int = 0
    # The answer was a refusal although an earlier call of it may have been done.
    refused_again: bool = False


@dataclass
class History:
    """What the callers saw."""

    attempts: list = field(default_factory=list)
    # Starts of work on an asset that others still had open, by what their starts were answered.
    two_at_once: int = 0
    kills: int = 0
    answers_lost: int = 0
    sent_twice: int = 0
    unanswered: int = 0
    ended_by_itself: int = 0


def count(history, recorded):
    """The row of one peer. `recorded` is {run: [(step, value), …]} in the order of the peer's record."""
    origin = {attempt.value: attempt for attempt in history.attempts}
    right, elsewhere, strange = Counter(), Counter(), 0
    for run, entries in recorded.items():
        for step, value in entries:
            attempt = origin.get(value)
            if attempt is None:
                strange += 1
            elif (attempt.run, attempt.step) == (run, step):
                right[value] += 1
            else:
                elsewhere[value] += 1
    sent = [attempt for attempt in history.attempts if attempt.kind != REUSE]
    reused = [attempt for attempt in history.attempts if attempt.kind == REUSE]
    told = [attempt for attempt in sent if attempt.outcome == ACKNOWLEDGED]
    present = {attempt.value for attempt in history.attempts if right[attempt.value] + elsewhere[attempt.value]}
    # Whose reading gave way to another payload under its key.
    winners = {attempt.key for attempt in reused if attempt.value in present}
    gone = [attempt for attempt in told if attempt.value not in present]
    replaced = [attempt for attempt in gone if attempt.key in winners]
    return {
        "acknowledged": len(told),
        "refused": sum(attempt.outcome == REFUSED for attempt in sent),
        "lost": len(gone) - len(replaced),
        "doubled": sum(max(0, right[attempt.value] - 1) for attempt in sent),
        "misplaced": sum(elsewhere[attempt.value] for attempt in sent),
        "strange": strange,
        "retries_refused": sum(attempt.refused_again and attempt.value in present for attempt in sent),
        "refused_yet_recorded": sum(attempt.outcome == REFUSED and not attempt.refused_again and attempt.value in present for attempt in sent),
        "two_at_once": history.two_at_once,
        "key_reuse": {
            "tried": len(reused),
            "refused": sum(attempt.outcome == REFUSED and attempt.value not in present for attempt in reused),
            "first_answer": sum(attempt.outcome == ACKNOWLEDGED and attempt.value not in present for attempt in reused),
            "recorded": sum(attempt.value in present for attempt in reused), "replaced": len(replaced),
        },
        "faults": {
            "kills": history.kills, "answers_lost": history.answers_lost, "sent_twice": history.sent_twice,
            "no_answer": history.unanswered, "ended_by_itself": history.ended_by_itself, "rivals": sum(attempt.kind == RIVAL for attempt in sent),
            "repeated": sum(attempt.repeated for attempt in sent),
        },
    }
