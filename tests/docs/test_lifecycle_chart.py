"""Is the chart in docs/architecture.md a picture of the tables in the code?"""

import re
import runpy
from pathlib import Path

from sift_batch._model.lifecycle import JOB_MOVES, TARGET_MOVES

DOCS = Path(__file__).parents[2] / "docs"
GENERATOR = runpy.run_path(str(DOCS / "lifecycle_chart.py"))


def test_chart_is_embedded() -> None:
    """The page holds the chart that `python docs/lifecycle_chart.py` draws now."""
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    assert page.count(GENERATOR["BEGIN"]) == page.count(GENERATOR["END"]) == 1
    assert page == GENERATOR["embedded"](page, GENERATOR["chart"]())


def test_chart_has_every_move_once() -> None:
    """Each row of the two tables is one line of the chart, and no line is anything else."""
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    job, target = re.findall(r"```mermaid\n(.*?)```", page, re.DOTALL)
    for moves, diagram in ((JOB_MOVES, job), (TARGET_MOVES, target)):
        drawn = re.findall(r"^ *(\w+) --> (\w+) : (.+)$", diagram, re.MULTILINE)
        assert sorted(drawn) == sorted((state, after, event) for (state, event), after in moves.items())
