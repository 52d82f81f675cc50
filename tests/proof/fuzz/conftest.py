"""Fuzzing of every parser of outside text that the engine has. No fixtures are needed."""

import sys
from pathlib import Path

# What plants faults is shared with the tests of the testing parts.
_TESTING = str(Path(__file__).parents[2] / "testing")
if _TESTING not in sys.path:
    sys.path.append(_TESTING)
