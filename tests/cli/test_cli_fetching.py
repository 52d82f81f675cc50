"""What is looked at before anything is fetched, jq programs and authorities: whose fault is a failure?"""

from contextlib import asynccontextmanager
from pathlib import Path

import certifi
import pytest

from sift_batch import Options, Target
from sift_batch.cli import fetching
from sift_batch.cli.plan import Refused
from sift_batch.cli.targets import Targets
from sift_batch.fetch import FetchConfig, FetchError


class Checker:
    """A fetcher that says of a program what it was told to say."""

    def __init__(self, error: FetchError | None) -> None:
        self.error = error

    async def check(self, target: Target) -> None:
        """Look at the program of a target."""
        if self.error is not None:
            raise self.error


@pytest.fixture
def check(monkeypatch):
    """Check one target's program with a fetcher that raises the error given."""

    def checked(error: FetchError | None) -> tuple[int, list[tuple[str, int, str]]]:
        @asynccontextmanager
        async def opened(config):
            yield Checker(error)

        monkeypatch.setattr(fetching, "open_fetcher", opened)
        complaints = []
        with Targets() as targets:
            targets.add(Target("http://site.org/", Options(jq=".")), None, None)
            bad = fetching.check_programs(targets, FetchConfig(), lambda *said: complaints.append(said))
        return bad, complaints

    return checked


def test_a_program_that_does_not_compile_is_its_lines_fault(check):
    """A bad program is told with its place."""
    assert check(FetchError("bad_option", "it is bad", hint="mend it")) == (
        1,
        [("argument", 1, "it is bad; mend it")],
    )
    assert check(None) == (0, [])


@pytest.mark.parametrize("code", ["internal", "extract_failed"])
def test_a_check_that_cannot_be_done_is_no_lines_fault(check, code):
    """When no worker can look at the programs, nothing is said of a line: exit 3, and what to do."""
    with pytest.raises(Refused) as caught:
        check(FetchError(code, "compiling the jq program failed"))
    assert caught.value.exit_code == 3
    assert "can't be checked" in caught.value.reason
    assert "try again" in caught.value.reason


def test_authorities_that_cannot_be_loaded_are_the_flags_fault(tmp_path):
    """A --ca-file without certificates is refused by the name of the flag, and one with them is taken."""
    path = tmp_path / "secret.pem"
    path.write_text("no certificate")
    with pytest.raises(Refused) as caught:
        fetching.fetch_config([], None, path)
    assert caught.value.exit_code == 2
    assert "--ca-file" in caught.value.reason
    assert "secret" not in caught.value.reason
    assert fetching.fetch_config([], None, Path(certifi.where())).ca_file == certifi.where()
