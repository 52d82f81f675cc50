"""What is measured, and in which order? Runs all of it and writes README.md's tables and the plots.

    python benchmarks/peers/setup.py --into DIR      # once
    python benchmarks/everything.py --into DIR

It takes about 20 minutes on two cores. The peers get a budget, within which a slow one runs less often than a
quick one, and the page says so; `--thorough` gives every peer all its rounds. On a machine that does nothing
else: each part is a comparison within itself, but times double where others work. One part that fails does
not stop the others; what each took is said at the end.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE / "peers"))

import roster  # noqa: E402 - found only now
import run  # noqa: E402 - found only now

PEERS_SECONDS = 360


def parts(into: Path, *, thorough: bool = False) -> dict[str, list[str]]:
    """Return the commands, each with its arguments, by what it measures."""
    environments = ["--into", str(into)]
    budget = [] if thorough else ["--seconds", str(PEERS_SECONDS), "--targets", "1000"]
    return {
        # Growth is a part of its own, with its plots.
        "numbers": ["run.py", "--write", *(name for name in run.BENCHMARKS if name != "growth")],
        "growth": ["growth.py", "--write"],
        "fetching": ["run.py", "--write", *run.FETCHING],
        "service": ["run.py", "--write", "service"],
        "quality": ["quality/rate.py", "--write"],
        "politeness": ["politeness.py", "--write", *environments],
        "peers": ["peers/compare.py", "--write", *environments, *budget],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", help=f"some of: {', '.join(parts(Path()))}")
    parser.add_argument("--into", type=Path, default=roster.default_folder(), help="where setup.py made them")
    parser.add_argument("--thorough", action="store_true", help="no budget for the peers")
    arguments = parser.parse_args()
    lines, failed = [], False
    for name, (file, *options) in parts(arguments.into, thorough=arguments.thorough).items():
        if arguments.parts and name not in arguments.parts:
            continue
        began = time.monotonic()
        code = subprocess.run([sys.executable, HERE / file, *options], check=False).returncode
        failed = failed or code != 0
        outcome = f"FAILED with {code}" if code else "done"
        lines.append(f"{name}: {outcome}, {time.monotonic() - began:.0f} s")
    print("", *lines, sep="\n")
    sys.exit(failed)


if __name__ == "__main__":
    main()
