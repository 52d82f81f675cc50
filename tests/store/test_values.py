"""Do the values that travel refuse nonsense, and keep to themselves what they hold?"""

import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift_batch import Caller, CallerClass, Config, Options, Result, Target, TargetState, TargetStatus

SECRET = "https://secret.example/path"


@pytest.mark.parametrize(
    "value",
    [
        Target(SECRET, Options(question=SECRET)),
        Options(mode=SECRET, question=SECRET, pages=SECRET, grep=SECRET, jq=SECRET),
        Result(SECRET, {SECRET: SECRET}),
        TargetStatus(
            0, SECRET, Options(), TargetState.FAILED, Result(SECRET), SECRET, SECRET, SECRET, 404, False, 9
        ),
        Caller(SECRET, SECRET, SECRET),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_repr_shows_a_target(value: object) -> None:
    """repr, str and format of what holds a target, or names a caller, show nothing of it."""
    for text in (repr(value), str(value), f"{value}", f"{[value]}", f"{value!a}"):
        assert "secret" not in text
    assert type(value).__name__ in repr(value)


@pytest.mark.parametrize(
    "value",
    [Target("u"), Options(), Result("c"), Caller("n"), Config()],
    ids=lambda value: type(value).__name__,
)
def test_values_are_frozen_and_slotted(value: Any) -> None:
    """A value can't be changed, nor given a new attribute."""
    for name in (dataclasses.fields(value)[0].name, "other"):
        with pytest.raises((dataclasses.FrozenInstanceError, AttributeError, TypeError)):
            setattr(value, name, "x")
    assert not hasattr(value, "__dict__")


@pytest.mark.parametrize("name", ["", "a\0b", "\0", "a\ud800", "\udfff", "x" * 1_025, "x" * 100_000])
def test_names_that_can_not_name_a_caller(name: str) -> None:
    """An empty, overlong or unprintable name is a ValueError that does not repeat the name."""
    with pytest.raises(ValueError, match="caller's name") as caught:
        Caller(name)
    assert len(str(caught.value)) < 200
    str(caught.value).encode()


@pytest.mark.parametrize("name", [None, b"alice", 7, ["alice"]])
def test_names_that_are_no_text(name: object) -> None:
    """A name that is no str is a TypeError."""
    with pytest.raises(TypeError, match="caller's name"):
        Caller(name)  # type: ignore[arg-type]


def test_names_that_can() -> None:
    """Any other text names a caller, up to 1,024 characters."""
    for name in ("a", "ü" * 1_024, "\U0001f600", " ", "a/b\n", "'; --"):
        assert Caller(name).name == name


def test_the_class_of_a_caller_may_be_its_value() -> None:
    """A caller's class may be given by its value; another word is a ValueError."""
    assert Caller("a", caller_class="restricted").caller_class is CallerClass.RESTRICTED  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="secret"):
        Caller("a", caller_class="secret")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("mode", None),
        ("question", b"x"),
        ("pages", 3),
        ("grep", ["x"]),
        ("jq", {}),
        ("context", 1),
        ("context", "no"),
        ("recover", None),
        ("recover", 1),
    ],
)
def test_options_of_the_wrong_type(field: str, value: object) -> None:
    """An option of the wrong type is a TypeError that names it."""
    with pytest.raises(TypeError, match=field):
        Options(**{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(("url", "options"), [(None, Options()), (b"u", Options()), ("u", {}), ("u", None)])
def test_targets_of_the_wrong_type(url: object, options: object) -> None:
    """A target's url is a str and its options are Options, else TypeError."""
    with pytest.raises(TypeError, match="target's"):
        Target(url, options)  # type: ignore[arg-type]


FIELDS = [item.name for item in dataclasses.fields(Config)]
COUNTS = {item.name for item in dataclasses.fields(Config) if item.type in ("int", int)}
MAY_BE_ZERO = {"retry_for", "shutdown_grace"}
MAY_BE_INFINITE = {"ttl", "retry_for", "target_timeout", "job_timeout", "shutdown_grace"}


def test_the_defaults_are_the_documented_ones() -> None:
    """A Config without arguments is made of the documented numbers."""
    assert dataclasses.asdict(Config()) == {
        "ttl": 86_400.0,
        "targets_per_job": 32,
        "jobs_per_caller": 1,
        "jobs_total": 8,
        "workers": 1,
        "workers_limit": 2,
        "max_bytes": 64 * 2**20,
        "retry_wait": 2.0,
        "retry_for": 600.0,
        "target_timeout": 300.0,
        "job_timeout": 14_400.0,
        "result_max_bytes": 256 * 2**10,
        "shutdown_grace": 30.0,
        "sweep_every": 60.0,
    }


@pytest.mark.parametrize("field", FIELDS)
def test_nonsense_is_refused_by_name(field: str) -> None:
    """Each field refuses what is no number (TypeError) and numbers that make no sense (ValueError)."""
    for value in ("1", None, [], True, 1j):
        with pytest.raises(TypeError, match=field):
            Config(**{field: value})
    nonsense: list[float] = [-1, -0.5, -math.inf, math.nan]
    if field not in MAY_BE_ZERO:
        nonsense.append(0)
    if field not in MAY_BE_INFINITE:
        nonsense.append(math.inf)
    if field in COUNTS:
        nonsense.append(1.5)
    for value in nonsense:
        with pytest.raises(ValueError, match=field):
            Config(**{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("field", FIELDS)
def test_sense_is_accepted(field: str) -> None:
    """Each field takes a whole number above 0, and zero or infinity where those make sense."""
    fine: list[float] = [1, 10**6]
    fine += [0] if field in MAY_BE_ZERO else []
    fine += [math.inf] if field in MAY_BE_INFINITE else []
    fine += [] if field in COUNTS else [0.5]
    for value in fine:
        assert getattr(Config(**{field: value}), field) == value  # type: ignore[arg-type]


@given(st.sampled_from(FIELDS), st.integers() | st.floats() | st.text() | st.none())
def test_a_config_is_made_or_refused(field: str, value: Any) -> None:
    """Whatever a field is given: a Config, or a ValueError or TypeError that names it."""
    refusal = ""
    try:
        Config(**{field: value})
    except (ValueError, TypeError) as exc:
        refusal = str(exc)
    assert not refusal or field in refusal
