"""Schemathesis' command, with all its checks, on a real service with two callers.

It runs with a fixed seed and few examples. By hand, for longer:
`SCHEMATHESIS_EXAMPLES=300 SCHEMATHESIS_SEED=7 pytest tests/service/test_schemathesis.py`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from schemathesis_program import KEYS

from sift_batch.service._openapi import document

pytestmark = [pytest.mark.real, pytest.mark.slow]

HERE = Path(__file__).parent
EXAMPLES = os.environ.get("SCHEMATHESIS_EXAMPLES", "5")
SEED = os.environ.get("SCHEMATHESIS_SEED", "1")


@contextmanager
def served(folder: Path) -> Iterator[int]:
    """Run the service in a process of its own; its port."""
    command = [sys.executable, str(HERE / "schemathesis_program.py"), str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0


def configured(folder: Path) -> Path:
    """Write the command's settings, with the keys of both callers: neither may see what the other has."""
    keys = [
        {"name": name, "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {key}"}]}
        for name, key in KEYS.items()
    ]
    (folder / "keys.json").write_text(json.dumps({"auth": keys}))
    settings = (HERE / "schemathesis.toml").read_text()
    callers = f"\n[auth.wfc]\npath = {json.dumps(str(folder / 'keys.json'))}\npeers = {json.dumps([*KEYS])}\n"
    path = folder / "schemathesis.toml"
    path.write_text(settings + callers)
    return path


def test_the_description_is_true(tmp_path: Path) -> None:
    """Nothing that schemathesis makes of the description, sound or not, gets an answer against it."""
    data = tmp_path / "service"
    data.mkdir()
    with served(data) as port:
        found = subprocess.run(
            [
                str(Path(sys.executable).with_name("schemathesis")),
                *("--config-file", str(configured(tmp_path))),
                *("run", f"http://127.0.0.1:{port}/openapi.json", "--checks", "all", "--no-color"),
                *("--max-examples", EXAMPLES, "--seed", SEED, "--warnings", "off"),
            ],
            env={**os.environ, "SCHEMATHESIS_HOOKS": "schemathesis_hooks", "PYTHONPATH": str(HERE)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=float(EXAMPLES) * 10 + 240,
            check=False,
        )
    assert found.returncode == 0, found.stdout[-8_000:] + found.stderr[-2_000:]
    # All but the path that the description itself came from.
    operations = sum(map(len, document()["paths"].values())) - 1
    assert f"Tested: {operations}\n" in found.stdout
