"""Which software do the peers need? Makes an environment for each, outside the checkout.

    python benchmarks/peers/setup.py                          # all, in the user's cache
    python benchmarks/peers/setup.py --into DIR huey_sqlite   # one, somewhere else

Versions are pinned where a result would not mean much otherwise. A Redis server is not installed: SAQ and
streaq are skipped where there is no `redis-server`, as are counts of syncs where there is no `strace`.
"""

import argparse
import subprocess
import sys
import venv
from pathlib import Path

import roster


def packages() -> dict[str, tuple[str, ...]]:
    """Return what goes into each environment."""
    peers = {module: roster.peer(module) for module in roster.MODULES}
    own = {module: peer.packages for module, peer in peers.items() if peer.own_environment}
    return own | roster.POLITE_ONLY


def make(folder: Path, names: tuple[str, ...]) -> bool:
    """Make one environment, or bring it up to date; say whether that worked."""
    if not (folder / "bin" / "python").exists():
        venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return subprocess.run([*pip, *names], check=False).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("peers", nargs="*", help=f"some of: {', '.join(packages())}")
    parser.add_argument("--into", type=Path, default=roster.default_folder())
    arguments = parser.parse_args()
    failed = []
    for module, names in packages().items():
        if arguments.peers and module not in arguments.peers:
            continue
        made = make(arguments.into / module, names)
        print(f"{module}: {'installed' if made else 'FAILED'}", flush=True)
        if not made:
            failed.append(module)
    if failed:
        sys.exit(f"not installed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
