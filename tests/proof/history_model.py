"""What does a good history look like when nobody thought of it? A tiny engine that tells what it does.

It keeps a dict of jobs, does one thing after another by a seeded plan, and records every call as the real
one would be recorded; some answers get lost. Nothing of the package is used.
"""

from random import Random
from typing import Any

from history_tale import OVER, Tale

CALLERS = ("alice", "bob", "carol")


class Model(Tale):
    """A few lives of a tiny engine; `tell` plays them."""

    def __init__(self, seed: int) -> None:
        super().__init__(jobs_total=6)
        self.random = Random(seed)
        self.jobs: dict[str, dict[str, Any]] = {}
        self.made = 0
        self.life = 0

    def tell(self, steps: int = 60) -> None:
        """Play a history that ends with an audit."""
        self._open()
        for _ in range(steps):
            act = self.random.choice(
                [self._submit, self._drain, self._drain, self._read, self._end, self._list]
            )
            act()
            if self.random.random() < 0.04:
                self._restart()
        # One job that is whole, so that every tampering finds something to tamper with.
        job = self._make("alice", 3)
        while self.jobs[job]["state"] not in OVER:
            self._drain()
            self._show(job, "alice")
        self._show(job, None)
        self._audit()

    def _open(self) -> None:
        self.life += 1
        self.note("opened", life=self.life)

    def _restart(self) -> None:
        self.note(self.random.choice(["killed", "closed"]), life=self.life)
        for job in self.jobs.values():
            job["letters"] = job["letters"].replace("r", "p")
            if job["state"] not in OVER:
                job.update(state="failed", error="restart", version=job["version"] + 1)
        self._open()
        self._audit()

    def _submit(self) -> None:
        if sum(job["state"] not in OVER for job in self.jobs.values()) < 6:
            self._make(self.random.choice(CALLERS), self.random.randrange(1, 5))

    def _make(self, caller: str, n: int) -> str:
        self.made += 1
        job = f"job-{self.made}"
        call = self.begin("submit", caller=caller, restricted=False, targets=[f"{job}/{i}" for i in range(n)])
        self.jobs[job] = {"caller": caller, "state": "queued", "letters": "p" * n, "version": 1, "error": ""}
        if self.random.random() < 0.15:
            self.history.unknown(call)
        else:
            self.history.ok(call, job=job, reused=False)
        return job

    def _drain(self) -> None:
        live = [name for name, job in self.jobs.items() if job["state"] not in OVER]
        if live:
            self._fetch(live[0])

    def _fetch(self, name: str) -> None:
        job = self.jobs[name]
        job["number"] = job.get("number", 0) + 1
        idx = job["letters"].find("r")
        if idx < 0:
            idx = 0
            job.update(state="running", letters="r" + job["letters"][1:], version=job["version"] + 1)
        call = self.fetching(name, idx, job["number"])
        roll = self.random.random()
        if roll < 0.2:
            self.history.ok(call, busy=True)
            return
        if roll < 0.4:
            self.history.fail(call, "TargetError")
        else:
            self.history.ok(call, digest=f"r{idx}")
        letters = job["letters"][:idx] + ("f" if roll < 0.4 else "d") + job["letters"][idx + 1 :]
        letters = letters.replace("p", "r", 1)
        job.update(letters=letters, version=job["version"] + 1, number=0)
        if "r" not in letters:
            kinds = set(letters)
            job["state"] = "partial" if len(kinds) > 1 else "done" if kinds == {"d"} else "failed"

    def _show(self, name: str, caller: str | None) -> None:
        job = self.jobs[name]
        more = {"version": job["version"], "error": job["error"]}
        self.see(job["state"], job["letters"], name, caller=caller, **more)

    def _read(self) -> None:
        if not self.jobs:
            return
        name = self.random.choice(list(self.jobs))
        owner, caller = self.jobs[name]["caller"], self.random.choice([*CALLERS, None])
        if caller in (None, owner):
            self._show(name, caller)
        else:
            self.miss(name, caller=caller)

    def _end(self) -> None:
        if not self.jobs:
            return
        name = self.random.choice(list(self.jobs))
        job = self.jobs[name]
        if job["state"] in OVER:
            if self.random.random() < 0.5:
                self.act("delete", True, name, job["caller"])
                del self.jobs[name]
        elif self.random.random() < 0.3:
            letters = job["letters"].replace("r", "p")
            job.update(state="cancelled", letters=letters, version=job["version"] + 1)
            self.act("cancel", True, name, job["caller"])

    def _list(self) -> None:
        caller = self.random.choice([*CALLERS, None])
        ids = [name for name, job in self.jobs.items() if caller in (None, job["caller"])]
        self.call("jobs", {"caller": caller}, ids=ids)

    def _audit(self) -> None:
        self.note("audit", life=self.life, jobs=len(self.jobs))
        for name, job in self.jobs.items():
            facts = self.facts(job["state"], job["letters"], version=job["version"], error=job["error"])
            self.note("row", job=name, caller=job["caller"], **facts)
        self.note("audited", life=self.life, orphans=[])
