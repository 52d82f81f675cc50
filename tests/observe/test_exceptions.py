"""What is told of an error: its real type, the places, facts from closed sets, and no text."""

import socket
import sqlite3
import ssl
import types

import pytest
import speak

from sift_batch._model.errors import (
    CallerBusyError,
    JobsBusyError,
    NoTargetsError,
    RetryLater,
    StoreError,
    TargetError,
    TooManyTargetsError,
)
from sift_batch._model.lifecycle import TargetState
from sift_batch._model.values import Caller, Options, Result, Target, TargetStatus
from sift_batch._observe.exceptions import describe, place, type_name

URL = "https://atlas.kestrel.example/orchid"


class Known(Exception):
    """An error of this module."""


def full_sqlite_error() -> BaseException:
    """Return an error of SQLite that quotes a bound value."""
    with sqlite3.connect(":memory:") as connection:
        try:
            connection.execute("select json_extract('{}', ?)", (f"$[{URL}",))
        except sqlite3.Error as error:
            return error
    raise AssertionError


def test_types_have_their_real_names_only() -> None:
    """A class is named if its module really has it under that name; any other is `unknown`."""
    assert type_name(ValueError) == "ValueError"
    assert type_name(Known) == f"{__name__}.Known"
    assert type_name(type("kestrel_example", (Exception,), {})) == "unknown"
    assert type_name(type("Known", (Exception,), {"__module__": __name__})) == "unknown"
    assert type_name(type("X", (Exception,), {"__module__": 3})) == "unknown"
    forged = type("Forged", (Exception,), {"__qualname__": "Known.kestrel", "__module__": __name__})
    assert type_name(forged) == "unknown"


def test_facts_come_from_closed_sets() -> None:
    """Errno, the resolver's code, the certificate check and SQLite's name are told; their texts are not."""
    certificate = ssl.SSLCertVerificationError(1, f"not valid for {URL}")
    certificate.verify_code = 62
    assert describe(ConnectionRefusedError(111, URL)) == "ConnectionRefusedError[ECONNREFUSED]"
    assert describe(FileNotFoundError(2, "x", URL)) == "FileNotFoundError[ENOENT]"
    assert describe(socket.gaierror(socket.EAI_NONAME, URL)) == "socket.gaierror[EAI_NONAME]"
    assert describe(certificate) == "ssl.SSLCertVerificationError[verify_code=62]"
    assert describe(full_sqlite_error()).startswith("sqlite3.OperationalError[SQLITE_ERROR]")
    lying = sqlite3.OperationalError(URL)
    lying.sqlite_errorname = "SQLITE_KESTREL"
    assert describe(lying) == "sqlite3.OperationalError"


def test_the_chain_is_followed_even_where_it_is_suppressed() -> None:
    """Causes, suppressed contexts and the members of groups are told, each by type and place."""
    told = describe(speak.raised(URL, "cause"))
    assert [part.split(" at ")[0] for part in told.split("; from ")] == [
        "RuntimeError",
        "ValueError",
        "KeyError",
    ]
    told = describe(speak.raised([URL, URL], "group"))
    assert "{ValueError | ExceptionGroup {OSError}}" in told
    assert "kestrel" not in told


def test_chains_and_groups_are_bounded() -> None:
    """A cycle, a long chain, a wide group and a deep traceback end in `...` or are cut, and never fail."""
    error: BaseException = ValueError(0)
    error.__context__ = other = ValueError(1)
    other.__context__ = error
    assert describe(error) == "ValueError; from ValueError; from ..."
    for number in range(1_000):
        error, below = ValueError(number), error
        error.__cause__ = below
    assert describe(error).count("ValueError") == 10
    wide = ExceptionGroup("x", [ValueError() for _ in range(1_000)])
    assert describe(wide).count("ValueError") == 23

    def recurse() -> None:
        recurse()

    with pytest.raises(RecursionError) as caught:
        recurse()
    assert describe(caught.value).count(":") == 12


def test_code_of_no_module_has_no_place() -> None:
    """A frame is named after its module if that is loaded and really runs there, and never after its file."""
    told = describe(speak.raised(URL, "filename"))
    assert "unknown" in told
    assert "kestrel" not in told
    frame = types.SimpleNamespace(f_globals={"__name__": "logging"})
    assert place(frame, 3) == "unknown"  # type: ignore[arg-type]


def test_the_packages_own_values_and_errors_show_no_target() -> None:
    """The texts of targets, options, results and the engine's errors hold no target."""
    options = Options(question=URL, grep=URL)
    target = Target(URL, options)
    status = TargetStatus(0, URL, options, TargetState.DONE, Result(URL), URL, URL, URL, None, False, 3)
    values: list[object] = [
        options,
        target,
        Result(URL, {"u": URL}),
        Caller(URL, URL, URL),
        status,
        [target, {1: status}],
    ]
    values += [
        NoTargetsError(),
        TooManyTargetsError(3),
        CallerBusyError("0" * 32),
        JobsBusyError(),
        RetryLater(),
        StoreError(),
    ]
    for value in values:
        assert "kestrel" not in f"{value!r} {value!s} {value}"
    assert describe(TargetError(URL, hint=URL, code=URL)) == "sift_batch._model.errors.TargetError"
