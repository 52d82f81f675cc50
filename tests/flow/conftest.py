"""Fixtures of the flows: what was logged."""

import logging
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture) -> Callable[[str], list[Any]]:
    """Return a function that gives the fields of all events of one name that were logged so far."""
    caplog.set_level(logging.INFO, "sift_batch")

    def of(name: str) -> list[Any]:
        return [
            record.args or {}
            for record in caplog.records
            if record.name == "sift_batch" and record.msg.split(" ")[0] == name
        ]

    return of
