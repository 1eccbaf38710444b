"""The script that every peer goes through: callers, lost answers, crashes, keys that are used again.

Each caller does one visit after the other: it begins work on an asset that it shares with another caller, records the
readings of ten numbered steps in order, and finishes. A call without an answer is sent again, the same call with the same
key, as the MCP specification asks of a client whose response stream broke. Nobody looks before repeating: hosts do not.
"""
import asyncio
import random
from collections import Counter
from dataclasses import dataclass
from itertools import count

from audit import ACKNOWLEDGED, READING, REFUSED, REUSE, RIVAL, Attempt, History
from servers import CALLER, Busy, Gone, Refused

STEPS_OF_A_VISIT = 10
# How often a call meets each fault.
LOST_ANSWER, SENT_TWICE, RIVALS, REUSED = 0.10, 0.05, 0.03, 0.05
# Tries of one call, and seconds in which nobody gets an asset, after which something is broken that the script did not break.
TRIES, PATIENCE = 60, 600.0


class Stuck(Exception):
    """A call got no answer, or no free asset, however often it was sent."""


@dataclass(frozen=True)
class Settings:
    callers: int
    steps: int
    kills: int
    seed: int


class Values:
    """Readings: each is given out once, so that whoever finds one knows whose it is."""

    def __init__(self):
        self.next = 0

    def one(self):
        self.next += 1
        return f"{1.5 + self.next / 10_000:.4f}"


class Script:
    """One peer, once through."""

    def __init__(self, peer, settings):
        self.peer, self.settings = peer, settings
        self.history, self.values, self.runs = History(), Values(), []
        self.up, self.starting, self.settled = asyncio.Event(), asyncio.Lock(), 0
        self.progress, self.open, self.moved = asyncio.Condition(), Counter(), {}

    async def play(self):
        """The history, and what the peer has after one more kill -9."""
        await self.peer.start()
        self.up.set()
        crashes = asyncio.create_task(self.crash())
        try:
            callers = [asyncio.create_task(self.caller(number)) for number in range(self.settings.callers)]
            # A crash task that fails must not leave the callers waiting for its server.
            work = asyncio.gather(*callers)
            await asyncio.wait({work, crashes}, return_when=asyncio.FIRST_COMPLETED)
            if crashes.done() and crashes.exception():
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
                raise crashes.exception()
            await work
        finally:
            crashes.cancel()
            await asyncio.gather(crashes, return_exceptions=True)
        await self.again()
        recorded = {run: await self.peer.read(handle) for run, handle in self.runs}
        return self.history, recorded

    async def again(self):
        async with self.starting:
            self.history.kills += 1
            await self.restart()

    async def restart(self):
        self.up.clear()
        await self.peer.kill()
        await self.peer.start()
        self.up.set()

    async def revive(self):
        """Starts a server that ended by itself, as a host does."""
        async with self.starting:
            if not self.peer.server.running():
                self.history.ended_by_itself += 1
                await self.restart()

    async def crash(self):
        """Kills at seeded counts of settled readings, in the middle of whatever the callers do then."""
        draw, total = random.Random(f"{self.settings.seed}/crash"), self.settings.callers * self.settings.steps
        for moment in sorted(draw.randrange(1, max(2, total)) for _ in range(self.settings.kills)):
            async with self.progress:
                await self.progress.wait_for(lambda: self.settled >= moment)
            await self.again()

    async def caller(self, number):
        CALLER.set(number)
        draw = random.Random(f"{self.settings.seed}/{number}")
        asset = f"UNIT-{number // 2 + 1}"
        for visit in range(self.settings.steps // STEPS_OF_A_VISIT):
            run = f"{number}-{visit}"
            handle = await self.begin(run, asset)
            for step in range(1, STEPS_OF_A_VISIT + 1):
                await self.step(draw, run, handle, step)
            self.open[asset] -= 1
            try:
                await self.insist(lambda: self.peer.close(handle, f"{run}-close"))
            except Refused:
                pass  # Of no reading: a run that steps were refused of may not end as done.

    async def begin(self, run, asset):
        now = asyncio.get_running_loop().time
        for number in count():
            try:
                # Another key each time: that somebody had the asset may be the answer that the last one keeps.
                handle = await self.insist(lambda: self.peer.open(run, asset, f"{run}-open-{number}"))
                break
            except Busy as busy:
                if now() > self.moved.setdefault(asset, now()) + PATIENCE:
                    raise Stuck(f"{asset} is never free: {busy}") from busy
                await asyncio.sleep(0.02)
        self.moved[asset] = now()
        self.history.two_at_once += self.open[asset] > 0
        self.open[asset] += 1
        self.runs.append((run, handle))
        return handle

    async def step(self, draw, run, handle, step):
        # Drawn in the same order whatever happens, so that each peer meets the same script.
        lose, twice, rival, reuse = (draw.random() < chance for chance in (LOST_ANSWER, SENT_TWICE, RIVALS, REUSED))
        key = f"{run}-{step}"
        mine = Attempt(run, step, self.values.one(), key)
        calls = [self.attempt(handle, mine, lose, twice)]
        if rival:
            calls.append(self.attempt(handle, Attempt(run, step, self.values.one(), f"{key}-rival", RIVAL)))
        await asyncio.gather(*calls)
        if reuse and self.peer.keyed and mine.outcome == ACKNOWLEDGED:
            await self.attempt(handle, Attempt(run, step, self.values.one(), key, REUSE))

    async def attempt(self, handle, attempt, lose=False, twice=False):
        self.history.attempts.append(attempt)
        if attempt.kind != REUSE and not await self.peer.expects(handle, attempt.step):
            attempt.outcome, attempt.answer = REFUSED, "the caller saw that another step is open"
            return await self.settle(attempt)

        async def call():
            return await self.peer.record(handle, attempt.step, attempt.value, attempt.key)

        try:
            await self.insist(call, attempt, lose, twice)
            attempt.outcome = ACKNOWLEDGED
        except Refused as refused:
            attempt.outcome, attempt.answer = REFUSED, str(refused)[:300]
            attempt.refused_again |= attempt.repeated > 0
        await self.settle(attempt)

    async def settle(self, attempt):
        if attempt.kind == READING:
            async with self.progress:
                self.settled += 1
                self.progress.notify_all()

    async def insist(self, call, attempt=None, lose=False, twice=False):
        """Sends a call until it has an answer: its value, or Refused."""
        reason = None
        for sent in range(TRIES):
            await asyncio.wait_for(self.up.wait(), PATIENCE)
            if attempt:
                attempt.repeated = sent + (sent > 0 and twice)
            try:
                if twice and sent == 0:
                    self.history.sent_twice += 1
                    attempt.repeated = 1
                    value, attempt.refused_again = await first(call)
                else:
                    value = await call()
            except Gone as gone:
                reason = gone
                self.history.unanswered += 1
                await asyncio.sleep(0.01)
                await self.revive()
                continue
            except Refused:
                if not (lose and sent == 0):
                    raise
            if lose and sent == 0:
                self.history.answers_lost += 1
                continue
            return value
        raise Stuck(f"no answer after {TRIES} tries: {reason}")


async def first(call):
    """The same call from two connections at once: the better answer, and whether the other one was a refusal."""
    answers = await asyncio.gather(call(), call(), return_exceptions=True)
    refusals = [answer for answer in answers if isinstance(answer, Refused)]
    for answer in answers:
        if not isinstance(answer, BaseException):
            return answer, bool(refusals)
    raise refusals[0] if refusals else answers[0]
