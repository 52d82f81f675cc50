"""How is a history written by hand? Few words for what the tests of the checker tell, good and bad.

States of targets are letters: p(ending), r(unning), d(one), f(ailed). A done target's result is `r` and its
index; a target's host is `h` unless it is told otherwise.
"""

from collections.abc import Callable
from typing import Any

from history import History, HistoryRules, check_history

STATES = {"p": "pending", "r": "running", "d": "done", "f": "failed"}
OVER = frozenset({"done", "partial", "failed", "cancelled"})


class Tale:
    """A history in the making; `rules` are those it is to be checked by."""

    def __init__(self, **rules: Any) -> None:
        self.rules = HistoryRules(**rules)
        self.now = 0.0
        self.history = History(clock=self._tick)
        self.note = self.history.note

    def _tick(self) -> float:
        self.now += 0.001
        return self.now

    def violations(self, *without: str) -> list[str]:
        """Check it."""
        return check_history(self.history.events, self.rules, without=without)

    def begin(self, op: str, **args: Any) -> int:
        """Call something and hear nothing yet."""
        return self.history.invoke("engine" if op == "fetch" else "client", op, **args)

    def call(self, op: str, args: dict[str, Any], **value: Any) -> None:
        """Call something that is acknowledged."""
        self.history.ok(self.begin(op, **args), **value)

    def submit(
        self, job: str = "j", n: int = 2, *, caller: str = "alice", reused: bool = False, **args: Any
    ) -> None:
        """Submit `n` targets that no other job has, unless `urls` are given."""
        urls = args.pop("urls", None) or [f"http://h/{job}/{idx}" for idx in range(n)]
        asked = {"caller": caller, "restricted": False, "targets": urls, "max_age": None, **args}
        self.call("submit", asked, job=job, reused=reused)

    def fetching(self, job: str = "j", idx: int = 0, number: int = 1, host: str = "h") -> int:
        """Begin a fetch."""
        return self.begin("fetch", job=job, idx=idx, number=number, host=host, batch=True)

    def fetch(self, job: str = "j", idx: int = 0, number: int = 1, **value: Any) -> None:
        """Fetch a target: well, unless `value` says otherwise."""
        self.history.ok(self.fetching(job, idx, number), **(value or {"digest": f"r{idx}"}))

    def facts(self, state: str, letters: str, **more: Any) -> dict[str, Any]:
        """Return what a read shows of a job."""
        targets = [
            [idx, STATES[letter], f"r{idx}" if letter == "d" else None, "internal" if letter == "f" else ""]
            for idx, letter in enumerate(letters)
        ]
        done = sum(letter in "df" for letter in letters)
        counts = {"total": len(letters), "done": done, "failed": letters.count("f")}
        return {"state": state, "settled": state in OVER, **counts, "targets": targets, **more}

    def see(
        self, state: str, letters: str, job: str = "j", *, caller: str | None = "alice", **more: Any
    ) -> None:
        """Read a job's status."""
        self.call("status", {"job": job, "caller": caller}, found=True, **self.facts(state, letters, **more))

    def miss(self, job: str = "j", *, caller: str | None = "alice", op: str = "status") -> None:
        """Read a job, and there is none."""
        self.call(op, {"job": job, "caller": caller}, found=False)

    def audit(self, *rows: tuple[str, str, str], **more: Any) -> None:
        """Look at the rows themselves: each a job, its state and its targets' letters."""
        self.note("audit", life=1, jobs=len(rows))
        for job, state, letters in rows:
            self.note("row", job=job, **self.facts(state, letters, **more))

    def act(self, op: str, result: bool = True, job: str = "j", caller: str | None = "alice") -> None:
        """Cancel or delete."""
        self.call(op, {"job": job, "caller": caller}, result=result)


Telling = Callable[[Tale], object]
