"""Which stories are worth telling? Plans from a seed, in several tempos.

Much happens at the very same instant: times and latencies come from a few round numbers, since races need
company. Between the bursts people think, for seconds in a crowded story and for hours in a long one.
What a plan means is in `sim_plan.py`. Next room: `sim_run.py`, which lets it happen.
"""

import math
from random import Random
from typing import Any, Final

from sim_plan import Action, Facts, Plan

FLEET: Final = ("alice", "bob", "carol")
RESTRICTED: Final = "rita"
CALLERS: Final = (*FLEET, RESTRICTED)
HOSTS: Final = ("a.test", "b.test", "c.test", "d.test")

# Name: share, length in seconds, actions.
_TEMPOS: Final[tuple[tuple[str, int, tuple[float, float], tuple[int, int]], ...]] = (
    ("rush", 4, (60, 600), (40, 110)),
    ("hours", 4, (3_600, 36_000), (40, 100)),
    ("days", 2, (86_400, 6 * 86_400), (40, 90)),
)
_PER_BURST: Final = (1, 2, 3, 5, 8)
_LATENCIES: Final = (0.0, 0.0, 0.5, 0.5, 1.0, 2.0, 5.0, 30.0)


def make_plan(seed: int) -> Plan:
    """Return the plan of a seed: always the same."""
    return _Teller(seed).tell()


class _Teller:
    """Makes one plan up."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(f"story {seed}")  # a text, since an int alone seeds like its negative
        shares = [tempo[1] for tempo in _TEMPOS]
        self.tempo, _, lengths, counts = self.random.choices(_TEMPOS, shares)[0]
        self.length = self.random.uniform(*lengths)
        self.count = self.random.randint(*counts)
        self.actions: list[Action] = []
        self.series: dict[int, Facts] = {}

    def tell(self) -> Plan:
        """Return the plan."""
        random = self.random
        pages = self._pages()
        self._act(list(pages))
        config = self._config()
        return Plan(
            seed=self.seed,
            schedule=self.seed,
            tempo=self.tempo,
            length=self.length,
            wall=1_700_000_000 + random.random(),
            config=config,
            gate=self._gate(),
            hooks=random.choices(("plain", "raising", "none"), (6, 1, 1))[0],
            inside=random.random() < 0.4,
            jitter=self._jitter(),
            pages=pages,
            phases=self._phases(),
            refusals=self._refusals(),
            actions=self.actions,
        )

    # ---- how everything is set up

    def _config(self) -> Facts:
        random = self.random
        workers = random.randint(1, 4)
        config: Facts = {
            "ttl": self._ttl(),
            "targets_per_job": 8,
            "jobs_per_caller": random.choice((1, 2, 3, 5)),
            "jobs_total": random.choice((2, 4, 8)),
            "workers": workers,
            "workers_limit": random.choice((2, 4)),
            "max_bytes": random.choice((600, 1_500, 4_000, 64 * 2**20)),
            "retry_wait": random.choice((0.05, 1.0, 2.0, 7.0)),
            "retry_for": random.choice((0, 5.0, 60.0, 600.0)),
            "target_timeout": random.choice((3.0, 20.0, 300.0)),
            "job_timeout": random.choice((10.0, 60.0, 900.0, 900.0 if self.tempo == "rush" else 14_400.0)),
            "result_max_bytes": random.choice((200, 256 * 2**10)),
            "shutdown_grace": random.choice((0, 1.0, 30.0)),
            "sweep_every": max(self.length / random.choice((50, 150)), random.choice((5.0, 60.0))),
        }
        return config

    def _ttl(self) -> float:
        return round(self.length * self.random.choice((0.02, 0.1, 0.5, 3.0)) + 1, self.random.choice((0, 2)))

    def _gate(self) -> Facts:
        total = self.random.choice((1, 2, 3, 8, 8))
        return {
            "total": total,
            "per_host": min(total, self.random.choice((1, 2, 2))),
            "batch_wait": self.random.choice((0, 3.0, 60.0, 60.0)),
        }

    def _jitter(self) -> Facts:
        random = self.random
        kind = random.choice(("none", "turns", "turns", "slow"))
        if kind == "none":
            return {}
        seconds = random.choice((0.5, 1.0)) if kind == "slow" else 0.0
        return {"before": random.choice((0.2, 0.6)), "after": random.choice((0.2, 0.6)), "seconds": seconds}

    # ---- how pages, hosts and the store behave

    def _pages(self) -> dict[str, list[Facts]]:
        hosts = HOSTS[: self.random.randint(1, len(HOSTS))]
        return {
            f"https://{host}/{n}": self._answers() for host in hosts for n in range(self.random.randint(2, 6))
        }

    def _answers(self) -> list[Facts]:
        answers = [self._answer() for _ in range(self.random.choice((1, 1, 2, 4)))]
        last = answers[-1]
        often = last.get("ready", 60.0) < 2 or last.get("retry_after") in (0.03, 1.0)
        if last.get("reason") == "gate" or often:
            # It would be asked again and again for as long as its job may last, thousands of times.
            answers.append({"kind": "ok", "latency": 0.5, "size": 10})
        return answers

    def _answer(self) -> Facts:
        random = self.random
        latency = random.choice(_LATENCIES)
        kind = random.choices(
            ("ok", "busy", "target_error", "error", "hang", "odd", "exit"), (50, 22, 8, 8, 5, 7, 0.25)
        )[0]
        answer: Facts = {"kind": kind, "latency": latency}
        if kind == "ok":
            answer["size"] = random.choice((0, 10, 80, 300))
            answer["stubborn"] = random.choice((0, 0, 0, 0, 2.0))
        elif kind == "busy":
            answer.update(self._busy())
        elif kind == "error":
            answer["error"] = random.choice(
                ("exception", "silent", "group", "mixed_group", "base", "cancelled", "nested")
            )
        elif kind == "odd":
            answer["odd"] = random.choice(("text", "none", "nan", "bytes", "surrogate", "huge_meta"))
        return answer

    def _busy(self) -> Facts:
        random = self.random
        busy: Facts = {"reason": random.choice(("host", "host", "gate", "retry_after", "elsewhere"))}
        after = random.choice((None, None, 0.03, 1.0, 4.0, 30.0, -1.0, 0, "nan", "inf", "text", 1e9))
        if after is not None:
            busy["retry_after"] = after
        ready = random.choices(("no", "after", "raises", "grouped"), (5, 3, 1, 1))[0]
        if ready in ("after", "raises"):
            busy["ready"] = random.choice((0.0, 0.5, 2.0, 20.0))
            busy["ready_raises"] = ready == "raises"
        elif ready == "grouped":
            busy["grouped"] = True
        return busy

    def _phases(self) -> list[Facts]:
        random = self.random
        phases = []
        for _ in range(random.choice((0, 1, 2, 3))):
            begin = random.uniform(0, self.length)
            phases.append(
                {
                    "host": random.choice(HOSTS),
                    "from": begin,
                    "until": begin + random.uniform(0.01, 0.2) * self.length,
                    "what": random.choice(("slow", "slow", "busy", "failing")),
                    "seconds": random.choice((2.0, 10.0)),
                }
            )
        return phases

    def _refusals(self) -> list[Facts]:
        random = self.random
        refusals = []
        for _ in range(random.choice((0, 0, 1, 2, 5))):
            begin = (
                random.choice(self.actions).at if random.random() < 0.7 else random.uniform(0, self.length)
            )
            refusals.append(
                {
                    "from": begin,
                    "until": begin + random.choice((0.0, 0.6, 5.0, 45.0)) + 1e-3,
                    "ops": random.choice(_REFUSED),
                    "error": random.choice(("store", "store", "exception", "base")),
                    "share": random.choice((1.0, 1.0, 0.5)),
                }
            )
        return refusals

    # ---- who does what

    def _act(self, urls: list[str]) -> None:
        at = 0.0
        thinking = self.length * sum(_PER_BURST) / len(_PER_BURST) / self.count
        while len(self.actions) < self.count:
            for _ in range(self.random.choice(_PER_BURST)):
                self._one(at, urls)
                at += self.random.choice((0.0, 0.0, 0.0, 0.5, 0.5, 1.0, 3.0))
            at += round(self.random.uniform(0, 2 * thinking) * 2) / 2

    def _one(self, at: float, urls: list[str]) -> None:
        what = self.random.choices(
            ("submit", "resubmit", "job", "slot", "hold", "jump", "end", "arm"), (26, 8, 45, 14, 2, 2, 3, 2)
        )[0]
        if what == "job":
            what = self.random.choice(_ABOUT_JOBS)
        getattr(self, f"_{what}", self._about_job)(at, what, urls)

    def _add(self, at: float, who: str, what: str, args: Facts, leave: Facts | None = None) -> Action:
        action = Action(len(self.actions), at, who, what, args, leave or {})
        self.actions.append(action)
        return action

    def _leave(self, share: float) -> Facts:
        if self.random.random() > share:
            return {}
        if self.random.random() < 0.5:
            return {"turns": self.random.randint(0, 12)}
        return {"seconds": self.random.choice((0.0, 0.5, 1.0, 3.0, 20.0, 200.0))}

    def _submit(self, at: float, what: str, urls: list[str]) -> None:
        random = self.random
        series = random.sample(urls, min(len(urls), random.choice((1, 1, 2, 3, 4, 6))))
        if random.random() < 0.03:
            series = random.choice(([], urls[:1] * 9))
        args: Facts = {"targets": series}
        if random.random() < 0.2:
            args["max_age"] = random.choice((0, 1.0, 60.0, 7_200.0, math.inf))
        if random.random() < 0.1:
            args["mode"] = "other"
        who = random.choice(CALLERS)
        action = self._add(at, who, "submit", args, self._leave(0.15))
        self.series[action.id] = {"who": who, **args}

    def _resubmit(self, at: float, what: str, urls: list[str]) -> None:
        if not self.series:
            return
        args = dict(self.random.choice(list(self.series.values())[-6:]))
        who = args.pop("who")
        if self.random.random() < 0.3:
            args["max_age"] = self.random.choice((0, 1.0, 60.0, 7_200.0))
        action = self._add(at, who, "submit", args, self._leave(0.1))
        self.series[action.id] = {"who": who, **args}

    def _about_job(self, at: float, what: str, urls: list[str]) -> None:
        random = self.random
        if not self.series:
            return
        job = random.choice(list(self.series)[-6:] if random.random() < 0.8 else list(self.series))
        who = self.series[job]["who"] if random.random() < 0.85 else random.choice(CALLERS)
        args: Facts = {} if what in ("jobs", "drain", "check") else {"job": job}
        if random.random() < 0.3 and what not in ("gone", "rerun"):
            args["anybody"] = True
        if what == "results":
            args["start"] = random.choice((0, 0, 0, 2))
        if what in ("watch", "results"):
            args["slow"] = random.choice((0.0, 0.0, 1.0))
            args["break_after"] = random.choice((0, 0, 1, 2))
        if what == "edge":
            args["late"] = random.choice((0.0, 0.5, 1.0, 1.5))
        waits = what in ("wait", "watch", "results", "drain")
        action = self._add(at, who, what, args, self._leave(0.5 if waits else 0.1))
        if what == "rerun":
            self.series[action.id] = {"who": who, "targets": self.series[job]["targets"]}

    def _slot(self, at: float, what: str, urls: list[str]) -> None:
        random = self.random
        args: Facts = {
            "url": random.choice(urls),
            "patience": random.choice((0, 1.0, 20.0, 100.0, math.inf)),
            "seconds": random.choice((0.0, 0.5, 2.0, 10.0, 60.0)),
            "ready": random.choice(("no", "no", "come", "stay away")),
        }
        for n in range(random.choice((1, 1, 2, 4))):
            self._add(at, f"user {n}", "slot", dict(args), self._leave(0.2))

    def _hold(self, at: float, what: str, urls: list[str]) -> None:
        seconds = self.random.choice((0.5, 5.0, 70.0))
        self._add(at, "host", "hold", {"url": self.random.choice(urls), "seconds": seconds})

    def _jump(self, at: float, what: str, urls: list[str]) -> None:
        size = self.random.choice((1.0, 30.0, 3_600.0, self._ttl(), 30 * 86_400.0))
        self._add(at, "clock", "jump", {"seconds": self.random.choice((-1, 1)) * size})

    def _end(self, at: float, what: str, urls: list[str]) -> None:
        self._add(at, "world", "end", self._how())

    def _arm(self, at: float, what: str, urls: list[str]) -> None:
        args: dict[str, Any] = self._how()
        if self.random.random() < 0.5:
            args["turns"] = self.random.randint(0, 60)
        else:
            args["steps"] = self.random.randint(1, 10)
            args["before"] = self.random.random() < 0.5
        self._add(at, "world", "end", args)

    def _how(self) -> Facts:
        how = self.random.choice(("leave", "cancel", "raise", "kill", "kill"))
        return {"how": how, "down": self.random.choice((0.0, 0.0, 0.5, 60.0))}


_ABOUT_JOBS: Final = (
    *("cancel",) * 4, *("wait", "watch", "rerun", "delete", "edge") * 3, *("results",) * 4,
    *("touch", "status") * 2, "job", "jobs", "gone", "drain", "check", "progress",
)  # fmt: skip
_REFUSED: Final = (
    "all", "writes", "reads", "record", "begin", "stop", "settle", "submit", "acquire", "sweep", "evict",
    "lapsed", "erase", "touch", "delete", "rerun",
)  # fmt: skip
