"""What goes wrong in one round, and when? A plan, as a value and as one line of text.

    memory grace=30 seed=0 store@5=lost fetch@3=hang strike:submit@12

is a round on a store in memory in which the fifth call of the store is done and its answer lost, the
third fetch hangs, and the scope of whoever submits is cancelled at the twelfth step. A failing round
prints this line, and `torture.py --only` plays it again. Next: `torture_round.py`, which does.
"""

from dataclasses import dataclass
from typing import Final

LOST: Final = frozenset({"lost", "lost foreign"})
"""Faults that break the store's promise that an error means that nothing happened."""
FATAL: Final = frozenset({"interrupt", "exit", "interrupt group"})
"""What must end the program and comes out as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One round. `store` and `fetch` say what goes wrong at which call, `strikes` what at which step."""

    where: str = "memory"
    grace: float = 30
    seed: int = 0
    store: tuple[tuple[int, str], ...] = ()
    fetch: tuple[tuple[int, str], ...] = ()
    strikes: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        words = [self.where, f"grace={self.grace:g}", f"seed={self.seed}"]
        words += [f"store@{at}={kind}" for at, kind in self.store]
        words += [f"fetch@{at}={kind}" for at, kind in self.fetch]
        words += [f"strike:{what}@{at}" for what, at in self.strikes]
        return " ".join(word.replace(" ", "_") for word in words)

    @classmethod
    def parse(cls, line: str) -> "Plan":
        """Return the plan that `str` gave this line for."""
        where, *words = line.split()
        grace, seed = 30.0, 0
        faults: dict[str, list[tuple[int, str]]] = {"store": [], "fetch": []}
        strikes: list[tuple[str, int]] = []
        for word in words:
            name, _, value = word.replace("_", " ").partition("=")
            what, _, at = name.partition("@")
            if name == "grace":
                grace = float(value)
            elif name == "seed":
                seed = int(value)
            elif what.startswith("strike:"):
                strikes.append((what.removeprefix("strike:"), int(at)))
            else:
                faults[what].append((int(at), value))
        return cls(
            where=where,
            grace=grace,
            seed=seed,
            store=tuple(faults["store"]),
            fetch=tuple(faults["fetch"]),
            strikes=tuple(strikes),
        )

    @property
    def lossy(self) -> bool:
        """Whether the store breaks its word in this round: some of what follows can't be promised then."""
        return any(kind in LOST for _, kind in self.store)

    @property
    def fatal(self) -> bool:
        """Whether something in this round may end the program."""
        kinds = [kind for _, kind in (*self.store, *self.fetch)]
        return bool(FATAL & {*kinds}) or any(what == "signal" for what, _ in self.strikes)
