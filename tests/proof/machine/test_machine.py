"""The state machine, as CI runs it: the same examples each time. `machine_run.py` runs others, and more."""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from machine_faults import CONFIGS, STORES, Altered
from machine_rules import Machine

FIXED = settings(derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
SEEN = (
    "a cancel that anybody may make",
    "a cancel that forgets to settle",
    "a touch that wakes the dead",
    "a lapsed job that answers a resubmit",
    "a memory of what went that anybody may ask",
    "a third worker",
    "one job more of a caller",
    "a job that is kept for a second longer",
)
"""The planted faults that are found soon; `machine_run.py --faults` has those too that take long."""


@pytest.mark.real
@pytest.mark.slow
def test_every_reader_gets_what_the_model_says() -> None:
    """Whatever is done in whatever order, each reader's answer is the model's after each step."""
    run_state_machine_as_test(Machine, settings=settings(FIXED, max_examples=30, stateful_step_count=30))


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("fault", SEEN)
def test_the_machine_sees(fault: str) -> None:
    """An engine that breaks one promise is found out."""
    changed: dict[str, Any] = {}
    if fault in STORES:
        operation, alter = STORES[fault]
        changed["wrap"] = staticmethod(lambda store: Altered(store, operation, alter))
    else:
        changed["config"] = CONFIGS[fault]
    faulty = type("FaultyMachine", (Machine,), changed)
    found = settings(FIXED, max_examples=1_000, stateful_step_count=30, phases=[Phase.generate])
    with pytest.raises(AssertionError):
        run_state_machine_as_test(faulty, settings=found)
