"""A service has as many open files as its connections need, or does not start."""

import os
import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from sift_batch.cli.plan import Refused
from sift_batch.cli.serve_descriptors import raise_descriptor_limit

SETTINGS = SimpleNamespace(
    service=SimpleNamespace(connections=100),
    gate=SimpleNamespace(total=8),
    fetch=SimpleNamespace(extract_workers=2),
)
NEEDED = 100 + 128 + 4 * 10
FOREVER = resource.RLIM_INFINITY


class Limits:
    """The limits of a process that is made up, and of its system."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, system: int) -> None:
        self.now, self._system = (soft, hard), system
        monkeypatch.setattr(resource, "getrlimit", lambda _: self.now)
        monkeypatch.setattr(resource, "setrlimit", self._set)

    def _set(self, _: int, limits: tuple[int, int]) -> None:
        if limits[0] > self._system:
            raise ValueError("sesame")
        self.now = limits


@pytest.mark.parametrize(
    ("soft", "hard", "after"),
    [
        (NEEDED - 1, NEEDED, NEEDED),
        (64, 4096, NEEDED),
        (64, FOREVER, NEEDED),
        (NEEDED, NEEDED, NEEDED),
        (NEEDED + 1, 4096, NEEDED + 1),
        (FOREVER, FOREVER, FOREVER),
    ],
)
def test_the_soft_limit_is_raised_as_far_as_needed(monkeypatch, soft: int, hard: int, after: int) -> None:
    """A soft limit that is too low is raised to what is needed and no further; the hard one stays."""
    limits = Limits(monkeypatch, soft, hard, 2**20)
    raise_descriptor_limit(SETTINGS)
    assert limits.now == (after, hard)


@pytest.mark.parametrize(
    ("soft", "hard", "system", "may", "room"),
    [
        (64, NEEDED - 1, 2**20, NEEDED - 1, "to 99 or less"),
        (64, 64, 2**20, 64, None),
        (200, FOREVER, 200, 200, "to 32 or less"),
    ],
)
def test_a_hard_limit_that_is_too_low_refuses_the_start(monkeypatch, soft, hard, system, may, room) -> None:
    """The line says what is needed, what there is, and how many connections there is room for, if any."""
    limits = Limits(monkeypatch, soft, hard, system)
    with pytest.raises(Refused) as refused:
        raise_descriptor_limit(SETTINGS)
    assert refused.value.exit_code == 2
    assert f"needs {NEEDED} open files, and this process may have {may};" in refused.value.reason
    assert "LimitNOFILE" in refused.value.reason
    assert ("lower service.connections" in refused.value.reason) == (room is not None)
    assert (room or "") in refused.value.reason
    assert limits.now == (soft, hard)


@pytest.mark.real
def test_a_real_limit_that_is_too_low(tmp_path: Path) -> None:
    """With 64 open files `serve` says so in one line and ends with 2, and makes nothing."""

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    done = subprocess.run(
        [sys.executable, "-m", "sift_batch", "serve", "--data", "data", "--port", "0"],
        cwd=tmp_path,
        env={name: text for name, text in os.environ.items() if not name.startswith("SIFT_BATCH_")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=few,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "service.connections = 256 needs" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_the_page_says_of_open_files() -> None:
    """The number on the page for operators is that of the settings as they are."""
    from sift_batch.cli.serve_descriptors import _reserve
    from sift_batch.service._settings import load_settings

    page = Path(__file__).parents[2] / "docs" / "operations.md"
    assert f"and {_reserve(load_settings(None, {}, {}))} beside them" in page.read_text(encoding="utf-8")
