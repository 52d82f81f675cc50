"""Does docs/command-line.md say what a line of the output holds?"""

import json
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
TYPES = {
    "number": int,
    "text": str,
    "true or false": bool,
    "object": dict,
    "object or null": dict | None,
    "number or null": int | None,
}


def test_the_table_is_what_a_line_holds(run, site):
    """The fields of a line are those of the table, in its order and of its types, done or failed."""
    section = PAGE.read_text("utf-8").partition("## What comes out")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section, re.MULTILINE)
    table = dict(rows)
    lines = [json.dumps({"url": site.url(path), "id": 7}) for path in ("/a", "/404")]
    done, failed = run("run", "-f", "-", stdin="\n".join(lines).encode()).views
    for view in (done, failed):
        assert list(view) == list(table)
        for name, value in view.items():
            kind = TYPES[table[name].strip()]
            assert isinstance(value, kind), name
            assert isinstance(value, bool) == (kind is bool), name
    assert (done["http_status"], done["result"]["meta"]["http_status"]) == (200, 200)
    assert (failed["http_status"], failed["result"], failed["chars"]) == (404, None, 0)
    assert "(HTTP 404)" in failed["error"]
    bare = run("run", site.url("/a")).views[0]
    assert list(bare) == [name for name in table if name not in ("line", "input")]
