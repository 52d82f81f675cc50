"""Makes the benchmarks importable: they are scripts beside the package, not a part of it."""

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

# At the end: no module of theirs may stand in front of a test's.
sys.path.extend([str(BENCHMARKS), str(BENCHMARKS / "peers"), str(BENCHMARKS / "quality")])
