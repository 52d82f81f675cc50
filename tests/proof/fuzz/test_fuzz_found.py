"""What fuzzing has found, each as its smallest case."""

import pytest
from breakages import Breakage, apply
from fuzz_rows import Damage, run_damaged

from sift_batch._store import queries, rows


@pytest.mark.parametrize("later", [False, True])
def test_bytes_that_are_no_number_do_not_end_a_runner(later: bool) -> None:
    """A job whose `nbytes` is a text is refused by the store; sweeping or deleting it breaks nothing."""
    assert run_damaged([("batch_job", "nbytes", "?", "abc")], later=later)


def test_a_total_that_is_no_number_is_a_store_error_in_a_stream() -> None:
    """A job whose `targets_total` is a text makes `results` raise `StoreError`, and no `TypeError`."""
    assert run_damaged([("batch_job", "targets_total", "?", "abc")], later=True)


def test_a_stream_of_a_settled_job_without_its_rows_ends() -> None:
    """`results` of a settled job that has fewer rows than targets does not read the store for ever."""
    assert run_damaged([("batch_target", "job_id", "?", "elsewhere")], later=True)


@pytest.mark.parametrize(
    "damage",
    [
        ("batch_target", "result", "?", b'{"content":1,"meta":[]}'),
        ("batch_job", "lease", "?", "abc"),
        ("batch_job", "version", "?", b"abc"),
        ("batch_target", "chars", "?", "abc"),
        ("batch_target", "url", "?", b"\xff"),
    ],
)
def test_a_value_of_another_type_is_a_store_error(damage: Damage) -> None:
    """What stands in a column in another type than the schema's never comes out as a field of a value."""
    assert run_damaged([damage] * 3, later=True)  # three: then it is the first row, of a settled job


@pytest.mark.parametrize(
    ("planted", "damages", "told"),
    [
        (
            Breakage(rows, "if tuple(map(type, row)) not in _JOB_SHAPES:", "if False:", ""),
            [("batch_job", "lease", "?", "abc")] * 3,
            "lease",
        ),
        (
            Breakage(queries, "if len(rows) != max(end - start, 0):", "if False:", ""),
            [("batch_target", "job_id", "?", "elsewhere")],
            "asked for ever",
        ),
    ],
    ids=["a job's types are not checked", "a job's targets are not counted"],
)
def test_a_store_that_trusts_its_rows_is_seen(
    planted: Breakage, damages: list[Damage], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a check of stored rows left out, what was found once is found again."""
    apply(planted, monkeypatch)
    with pytest.raises(AssertionError, match=told):
        run_damaged(damages, later=True)
