"""Which peers are there, and which Python runs each? Environments stand outside the checkout.

Each peer has an environment of its own, so that its import time, memory and dependencies are its own.
`setup.py` makes them; a peer without one is skipped, and said to be.
"""

import importlib
import os
import sys
from pathlib import Path

from work import Peer

ENGINE = "sift"
FLOOR = "floor_sync"
MODULES = (
    ENGINE,
    FLOOR,
    "floor_trio",
    "huey_sqlite",
    "persist_queue",
    "lite_queue",
    "dbos_sqlite",
    "apscheduler_sqlite",
    "saq_redis",
    "streaq_redis",
    "scrapy_jobdir",
    "crawlee_files",
)
POLITE_ONLY = {"httpx_limiters": ("trio>=0.30", "httpx==0.28.1")}
"""Environments that only `politeness.py` needs, and what is in them."""


def default_folder() -> Path:
    """Return where the environments are if nothing else is said: the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "sift-batch-bench"


def peer(module: str) -> Peer:
    found: Peer = importlib.import_module(module).PEER
    return found


def python_of(module: str, folder: Path, *, own_environment: bool = True) -> Path | None:
    """Return the interpreter that runs a peer, or None if its environment was not made."""
    if not own_environment:
        return Path(sys.executable)
    python = folder / module / "bin" / "python"
    return python if python.exists() else None
