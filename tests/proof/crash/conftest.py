"""Crashes: processes that are killed, disks that lose power, disks that are full. Finds its neighbours."""

import sys
from pathlib import Path

_HERE = Path(__file__).parent
for folder in (_HERE.parent.parent / "real", _HERE):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
