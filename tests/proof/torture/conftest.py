"""Torture: every call fails in turn, and a cancellation strikes at every step. Finds its neighbours."""

import sys
from pathlib import Path

_HERE = Path(__file__).parent
for folder in (_HERE.parent.parent / "flow", _HERE.parent.parent / "testing", _HERE):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
