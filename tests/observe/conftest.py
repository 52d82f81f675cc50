"""Fixtures for what is said aloud: the vectors, and a search for what must not come out."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from sift_batch._observe.lines import tripwire

sys.path.insert(0, str(Path(__file__).parent))

VECTORS_FILE = Path(__file__).parent / "vectors.json"


def load_vectors() -> list[dict[str, Any]]:
    """Return the vectors; the file says how a payload is written."""
    vectors: list[dict[str, Any]] = json.loads(VECTORS_FILE.read_text())["vectors"]
    return vectors


def leaks(vector: dict[str, Any], output: str) -> list[str]:
    """Return what came out of a vector's secrets, in any line, raw or in JSON's or Python's escapes."""
    readings = output.split("\n")
    readings += [
        line.encode("ascii", "backslashreplace").decode("unicode_escape", "replace") for line in readings
    ]
    return [secret for secret in vector["must_not_appear"] if any(secret in line for line in readings)]


@pytest.fixture(autouse=True)
def _raising_tripwire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tripwire, "raising", True)
    monkeypatch.setattr(tripwire, "count", 0)
