"""Refuse the disk at its N-th call, for every N, and ask what is left: `crash_full.py --shallow 100`.

One process does everything that there is to do, on a file whose N-th write (or sync, or any call named
below) is refused by the system, as on a full or a broken disk: `strace` puts the error in its place. It must
come to its end all the same, without a restart, and what it was told must be there. For N = 1, 2, … until
nothing is refused any more, or for a sample of them that the seed chooses.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from random import Random, SystemRandom
from typing import Final, NamedTuple

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent), str(_HERE.parents[1] / "real")]

from crash_parent import Story  # noqa: E402 - found by the path above
from crash_scenes import END, RULES  # noqa: E402
from crash_trace import NO_STRACE, record_refusals, strace  # noqa: E402

_NAME: Final = "jobs0.sift"
_FILES: Final = ("", "-wal", "-shm", "-draft", "-draft-wal", "-draft-journal", "-draft-shm")


class Refusal(NamedTuple):
    """Which calls are refused, with which error, and how many in a row."""

    call: str
    error: str
    length: int = 1

    def when(self, number: int) -> str:
        """Return the words that tell strace so."""
        return str(number) if self.length == 1 else f"{number}..{number + self.length - 1}"


REFUSALS: Final = (
    Refusal("pwrite64", "ENOSPC"),
    Refusal("pwrite64", "ENOSPC", 25),
    Refusal("pwrite64", "EIO"),
    Refusal("pwrite64", "EROFS", 10),
    Refusal("fdatasync", "EIO"),
    Refusal("fdatasync", "ENOSPC", 3),
    Refusal("ftruncate", "EIO"),
    Refusal("openat", "ENOSPC"),
    Refusal("pread64", "EIO"),
)


def refuse(refusal: Refusal | None, number: int, call: str) -> tuple[int, list[str]]:
    """Let a process do everything; return how many calls were refused, and what was wrong after."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "store"
        folder.mkdir()
        files = [folder / f"{_NAME}{suffix}" for suffix in _FILES]
        command = [sys.executable, _HERE / "crash_child.py", "patient", json.dumps({"folder": str(folder)})]
        refused, errors = record_refusals(
            [str(word) for word in command],
            [*files, folder],
            call=call,
            error="" if refusal is None else refusal.error,
            when="" if refusal is None else refusal.when(number),
            trace=Path(name) / "trace",
        )
        if errors:
            return refused, [f"it did not come to its end: {errors[-3_000:]}"]
        with Story(folder / _NAME, rules=RULES, clock=lambda: END) as story:
            story.look()
            story.reopen(twice=True)
            return refused, story.judge()


def sweep(refusal: Refusal, *, shallow: int | None, seed: int) -> tuple[int, int, list[str]]:
    """Refuse at every place, or at `shallow` of them; return places, refused calls, and what was wrong."""
    calls, wrong = refuse(None, 0, refusal.call)
    places = list(range(1, calls + 1))
    if shallow is not None and shallow < len(places):
        places = sorted(Random(f"{seed}/{refusal}").sample(places, shallow))
    total = 0
    for number in places:
        refused, found = refuse(refusal, number, refusal.call)
        total += refused
        wrong += [f"{refusal.call} {refusal.when(number)} {refusal.error}: {line}" for line in found]
    return len(places), total, wrong


def main() -> int:
    """Run as a program."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--shallow", type=int, default=None, help="so many places of each kind, not all")
    parser.add_argument("--what", choices=sorted({refusal.call for refusal in REFUSALS}), default=None)
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    if strace() is None:
        print(f"crash_full: {NO_STRACE}")
        return 2
    seed = SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed
    print(f"full: seed {seed}", flush=True)
    faults: list[str] = []
    for refusal in REFUSALS:
        if arguments.what not in (None, refusal.call):
            continue
        began = time.monotonic()
        places, refused, wrong = sweep(refusal, shallow=arguments.shallow, seed=seed)
        faults += wrong
        print(
            f"{refusal.call:<10} {refusal.error:<7} {refusal.length:>2} in a row: {places} places, "
            f"{refused} calls refused, {len(wrong)} wrong, {time.monotonic() - began:.1f} s",
            flush=True,
        )
    for fault in faults[:30]:
        print(f"VIOLATION {fault}")
    if faults:
        again = f"--seed {seed}"
        again += f" --shallow {arguments.shallow}" if arguments.shallow is not None else ""
        again += f" --what {arguments.what}" if arguments.what else ""
        print(f"again: python tests/proof/crash/crash_full.py {again}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
