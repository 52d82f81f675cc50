"""Is docs/service.md true? Its tables are the code's, and its commands run against a real service."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import service_page

from sift_batch.cli import demo_site  # noqa: F401 - the pages that are fetched

BIN = Path(sys.executable).parent


@pytest.mark.parametrize("mark", service_page.TABLES)
def test_a_table_is_what_the_code_says(mark: str) -> None:
    """`python tests/docs/service_page.py` would change nothing."""
    page, make = service_page.TABLES[mark]
    assert service_page.section(page, mark)[0] == make() + "\n"
