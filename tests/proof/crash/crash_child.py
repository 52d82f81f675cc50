"""Who dies? A process that forks one process after another; each plays one role and is killed in it.

Run as a program; the tests' side of it is `Lives` in `crash_parent.py`. It has imported everything and has
no thread, so that a life begins in milliseconds. It reads one JSON list a line, `[role, arguments]`, and says
`["born", pid]`; the life itself says what it likes, and `["over"]` if it comes to its end. At the next line
it waits for the process, whose number nobody else can have had till then, and says `["dead", status]`.
"""

import json
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent)]

import crash_scenes  # noqa: E402 - found by the path above
import trio  # noqa: E402
from crash_load import Load, fast_clock  # noqa: E402
from deterministic import deterministic  # noqa: E402
from history import History  # noqa: E402

from sift_batch._model.crash import on_crash_point  # noqa: E402
from sift_batch.testing import ThreadAutojumpClock  # noqa: E402


def say(*words: Any) -> None:
    """Write one line, whole, without any buffer of this process."""
    os.write(1, json.dumps(words).encode() + b"\n")


def load(
    path: str,
    history: str,
    *,
    life: int,
    seed: int,
    durability: str = "full",
    removing: bool = False,
    seconds: float | None = None,
    calls: int | None = None,
    lives: int = 1,
) -> None:
    """Work until killed; or, in each of `lives` lives, for so many seconds or acknowledged calls."""

    async def main() -> None:
        with History(Path(history), fast_clock) as record:
            for number in range(life, life + lives):
                work = Load(record, seed + number, removing=removing)
                say("opening")
                async with work.opened(path, number, durability) as runner:
                    say("began")
                    await work.run(runner, seconds=seconds or inf, calls=calls or inf)
                    say("closing")
        say("closed")

    with deterministic(seed):
        trio.run(main)


def scene(folder: str, *, point: str | None = None, passing: int = 1) -> None:
    """Play the scene; die at the `passing`-th time that the crash point is passed."""
    left = passing

    def hook(passed: str) -> None:
        nonlocal left
        if passed == point:
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    on_crash_point(hook)
    trio.run(crash_scenes.everything, Path(folder))


def patient(folder: str) -> None:
    """Play the scene, and go on whatever the store refuses; waits take no time."""
    trio.run(crash_scenes.patiently, Path(folder), clock=ThreadAutojumpClock())


ROLES: dict[str, Callable[..., None]] = {"load": load, "scene": scene, "patient": patient}


def live(role: str, arguments: dict[str, Any]) -> int:
    """Play one role; return the exit status of this process."""
    logging.getLogger("sift_batch").setLevel(logging.CRITICAL)
    try:
        ROLES[role](**arguments)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        say("over")
    return 0


def main() -> None:
    """Fork a process for each line of standard input, and wait for its end."""
    while line := sys.stdin.readline():
        role, arguments = json.loads(line)
        pid = os.fork()
        if not pid:
            os.close(0)
            os._exit(live(role, arguments))
        say("born", pid)
        sys.stdin.readline()
        _, status = os.waitpid(pid, 0)
        say("dead", os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        # One life in this very process, for whoever traces it; one that hangs must not outlive its tracer.
        signal.alarm(110)
        sys.exit(live(sys.argv[1], json.loads(sys.argv[2])))
    main()
