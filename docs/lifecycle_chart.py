"""Draw the lifecycle of jobs and targets from their tables, into architecture.md.

    python docs/lifecycle_chart.py

The tables in `src/sift_batch/_model/lifecycle.py` are the truth; the chart is a picture of them, and
`tests/docs/test_lifecycle_chart.py` fails when the two differ. Nothing else in the page is touched.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

from sift_batch._model.lifecycle import JOB_MOVES, TARGET_MOVES, JobState, TargetState

PAGE: Final = Path(__file__).with_name("architecture.md")
BEGIN: Final = "<!-- lifecycle chart: begin, drawn by docs/lifecycle_chart.py -->"
END: Final = "<!-- lifecycle chart: end -->"

Moves = Mapping[tuple[StrEnum, StrEnum], StrEnum]


def chart() -> str:
    """Return the chart as Markdown: two Mermaid diagrams, every line of which is one row of a table."""
    job = _diagram(JobState, JOB_MOVES)
    target = _diagram(TargetState, TARGET_MOVES)
    return f"A job:\n\n{job}\n\nA target:\n\n{target}"


def _diagram(states: type[StrEnum], moves: Moves) -> str:
    return "\n".join(["```mermaid", "stateDiagram-v2", *_lines(states, moves), "```"])


def _lines(states: type[StrEnum], moves: Moves) -> Iterator[str]:
    first, *_ = states
    yield f"    [*] --> {first}"
    for (state, event), after in moves.items():
        yield f"    {state} --> {after} : {event}"
    left = {state for state, _ in moves}
    # An end is a state that no row leaves.
    for state in states:
        if state not in left:
            yield f"    {state} --> [*]"


def embedded(page: str, drawn: str) -> str:
    """Return the page with the chart between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{drawn}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(embedded(PAGE.read_text(encoding="utf-8"), chart()), encoding="utf-8")
