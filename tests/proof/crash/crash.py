"""Kill a process that works, again and again, and ask each time what is left: `crash.py --kills 1000`.

One file lives through many lives. Each is killed as `kill -9` does, at a moment that the seed decides:
40 to 250 ms after its work began, while jobs are mostly being removed, while the store is being opened
(the restart step included), or while it is being closed. After each death the file is looked at as it lies
there and then opened; the history of all its lives must hold (`history_rules.py`). A kill does not test
what reaches the disk, since the system keeps what was written: that is `crash_power.py`.

With `--points`, a process dies at each named crash point instead (`crash_points.py`), the first time that it
passes it, the second time and so on, until it passes no more.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from random import Random, SystemRandom

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent), str(_HERE.parents[1] / "real")]

from crash_load import RULES  # noqa: E402 - found by the path above
from crash_parent import LifeFailed, Lives, Story, Tally, wait  # noqa: E402
from crash_points import TABLE, die_at  # noqa: E402

KILLS_A_FILE = 20
_MODES = {"load": 6, "removing": 2, "opening": 2, "closing": 2}


def kill_once(lives: Lives, story: Story, random: Random) -> None:
    """Let one or two processes work on the file, and kill them."""
    (mode,) = random.choices(list(_MODES), list(_MODES.values()))
    arguments = {"path": str(story.path), "history": str(story.told), "seed": random.randrange(10**9)}
    durability = random.choice(["full", "normal"])
    if mode == "closing":
        seconds = 0.04 + random.random() * 0.08
        lives.begin("load", life=story.next_life(), durability=durability, seconds=seconds, **arguments)
        lives.until("closing")
        wait(random.random() * 0.07)
        story.died(mode, killed=lives.kill())
    else:
        removing = mode == "removing"
        lives.begin("load", life=story.next_life(), durability=durability, removing=removing, **arguments)
        lives.until("began")
        wait(0.04 + random.random() * 0.21)
        story.died("removing" if removing else "load", killed=lives.kill())
    if mode == "opening":
        # Nobody has put right yet what the last life left.
        lives.begin("load", life=story.next_life(), durability=durability, **arguments)
        lives.until("opening")
        wait(random.random() * 0.02)
        story.died(mode, killed=lives.kill())
    story.reopen(twice=random.random() < 0.2)


def one_file(lives: Lives, folder: Path, seed: str, kills: int) -> tuple[Tally, list[str], str]:
    """Kill so often on one file; return what was done, what was wrong, and the history if anything was."""
    random = Random(seed)
    with Story(folder / "jobs.sift", rules=RULES) as story:
        try:
            while story.tally.kills < kills and not story.faults:
                kill_once(lives, story, random)
        except LifeFailed as exc:
            story.faults.append(str(exc))
        wrong = story.judge()
        return story.tally, wrong, story.history() if wrong else ""


def run(kills: int, seed: int, *, a_file: int = KILLS_A_FILE) -> tuple[Tally, list[str]]:
    """Kill so often, on as many files as that takes; return what was done, and what was wrong."""
    tally, number = Tally(), 0
    faults: list[str] = []
    with Lives() as lives:
        while tally.kills < kills and not faults:
            with tempfile.TemporaryDirectory() as folder:
                done, wrong, history = one_file(
                    lives, Path(folder), f"{seed}/{number}", min(a_file, kills - tally.kills)
                )
            tally.add(done)
            faults += wrong
            number += 1
            if history:
                print(history)
    return tally, faults


def run_points(passings: int) -> tuple[int, list[str]]:
    """Die at each point, at most so many times; return how many processes died, and what was wrong."""
    deaths, faults = 0, []
    with Lives() as lives:
        for point in TABLE:
            passing, died = 0, True
            while died and passing < passings:
                passing += 1
                with tempfile.TemporaryDirectory() as folder:
                    died, wrong = die_at(lives, Path(folder), point, passing)
                deaths += died
                faults += wrong
            print(f"{point:<28} died {passing - (not died):>3} times: {TABLE[point].allowed}", flush=True)
    return deaths, faults


def main() -> int:
    """Run as a program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=None, help="decides every moment and every plan")
    parser.add_argument("--points", action="store_true", help="die at each named point instead")
    parser.add_argument("--passings", type=int, default=10**6, help="at most so many deaths at one point")
    arguments = parser.parse_args()
    if arguments.points:
        deaths, faults = run_points(arguments.passings)
        print(f"{deaths} deaths at {len(TABLE)} points")
        again = f"--points --passings {arguments.passings}"
    else:
        seed = SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed
        faults = report_kills(arguments.kills, seed)
        # The moments are real time's.
        again = f"--kills {arguments.kills} --seed {seed}   # perhaps not the first time"
    for fault in faults:
        print(f"VIOLATION {fault}")
    print(f"again: python tests/proof/crash/crash.py {again}" if faults else "lost: 0")
    return 1 if faults else 0


def report_kills(kills: int, seed: int) -> list[str]:
    """Kill so often, print what was done, and return what was wrong."""
    print(f"crash: {kills} kills, seed {seed}", flush=True)
    began = time.monotonic()
    tally, faults = run(kills, seed)
    seconds = time.monotonic() - began
    print(f"{tally.kills} kills in {seconds:.1f} s, {tally.kills / seconds:.1f} a second: {tally.modes}")
    print(f"acknowledged: {tally.acknowledged}")
    print(f"looked at the file {tally.checks} times: {tally.jobs} jobs, {tally.targets} stored targets")
    return faults


if __name__ == "__main__":
    sys.exit(main())
