"""Is docs/service.md true? Its tables are the code's, and its commands run against a real service."""

import functools
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import made_tables
import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "service.md"
README = ROOT / "README.md"
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


@pytest.mark.parametrize("mark", made_tables.TABLES)
def test_a_table_is_what_the_code_says(mark: str) -> None:
    """`python tests/docs/made_tables.py` would change nothing."""
    page, make = made_tables.TABLES[mark]
    assert made_tables.section(page, mark)[0] == make() + "\n"


class _Pages(http.server.SimpleHTTPRequestHandler):
    """The sample pages of the documentation; `/` and `/second` are one of them."""

    def do_GET(self) -> None:
        if self.path in ("/", "/second"):
            self.path = "/gauge.html"
        super().do_GET()

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def site() -> Iterator[str]:
    """Serve sample pages on a free port of this machine."""
    handler = functools.partial(_Pages, directory=str(ROOT / "docs" / "pages"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=functools.partial(server.serve_forever, poll_interval=0.02))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[str]:
    """Run a service on a free port, with its data in the folder of the test."""
    command = ["sift-batch", "serve", "--data", str(tmp_path / "data"), "--port", "0", "--metrics-port", "0"]
    with subprocess.Popen(
        [*command, "--allow", "127.0.0.1/32", "--ports", "any"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PATH": PATH},
    ) as process:
        assert process.stdout is not None
        found = re.fullmatch(r"listening on (\S+) metrics \S+\n", process.stdout.readline())
        assert found is not None
        yield found[1]
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def run(script: str, folder: Path) -> str:
    """Run a script that stops at its first failure; return what it printed."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": PATH},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def documents(text: str) -> list[dict[str, object]]:
    """Give the JSON objects that stand in a text, one behind the other."""
    found, decoder = [], json.JSONDecoder()
    while (at := text.find("{")) >= 0:
        value, end = decoder.raw_decode(text, at)
        found.append(value)
        text = text[end:]
    return found


@pytest.mark.real
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_page_by_curl(tmp_path: Path, site: str, service: str) -> None:
    """The requests of the page, sent by curl in their order, give what the page says."""
    blocks = re.findall(
        r"<!-- begin of service -->\n(.*?)<!-- end of service -->", PAGE.read_text("utf-8"), re.DOTALL
    )
    by_curl, by_commands = (
        "\n".join(re.findall(r"```sh\n(.*?)```", block, re.DOTALL))
        .replace("http://127.0.0.1:8080", service)
        .replace("https://example.org", site)
        for block in blocks
    )
    told = run(by_curl, tmp_path)
    views = documents(told)
    assert all("code" not in view or view["code"] in ("", "page_not_found") for view in views)
    assert next(view["status"] for view in views if "targets" in view) == "partial"
    for event in ("job", "target", "end"):
        assert f"event: {event}\n" in told
    assert views[-1]["content"].startswith("# Tide gauge")  # type: ignore[attr-defined]
    assert all(view["status"] == "done" for view in documents(run(by_commands, tmp_path)) if "idx" in view)


@pytest.mark.real
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_readme_as_a_service(tmp_path: Path, site: str, service: str) -> None:
    """The README's way from a running service to results, by curl and by the command line, is one."""
    section = README.read_text("utf-8").partition("## Run it as a service")[2].partition("\n## ")[0]
    start, *blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    assert "sift-batch serve --data sift-data" in start
    (tmp_path / "sift-data").symlink_to(tmp_path / "data")
    script = "\n".join(blocks).replace("http://127.0.0.1:8080", service)
    told = run(script.replace("http://127.0.0.1:8979", site).replace(".venv/bin/", ""), tmp_path)
    assert "# Tide gauge TG-2" in told
    assert '"code":"page_not_found"' in told.replace(": ", ":")
