"""Do the README's first commands work as they stand, in the order in which they stand?"""

import functools
import http.server
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"<title>venv</title><p>It is installed with Python. " + b"A word on what it is for. " * 20
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def site() -> Iterator[str]:
    """A site on this machine, for the public ones."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = threading.Thread(target=functools.partial(server.serve_forever, poll_interval=0.02))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def test_the_readme_fetches_a_list_of_urls(tmp_path: Path, site: str) -> None:
    """Its commands make the list, fetch it, and fetch a part of a page and of a PDF, without an error."""
    section = (ROOT / "README.md").read_text("utf-8")
    section = section.partition("## Fetch a list of URLs")[2].partition("\n## ")[0]
    script = "\n".join(re.findall(r"```sh\n(.*?)```", section, re.DOTALL))
    assert "urls.txt" in script
    port = str(_free_port())
    script = re.sub(r"https://[a-z.]+", site, script).replace("8978", port)
    listening = f"until (echo >/dev/tcp/127.0.0.1/{port}) 2>/dev/null; do sleep 0.05; done"
    assert "& sleep 1\n" in script
    script = script.replace("& sleep 1\n", f"& {listening}\n")
    # The sites are on this machine here.
    script = re.sub(
        r"sift-batch run(?!.* --allow)", "sift-batch run --allow 127.0.0.1/32 --ports any", script
    )
    script = script.replace(".venv/bin/sift-batch", f"{sys.executable} -m sift_batch").replace(
        "python3", sys.executable
    )
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "results.jsonl").read_text().count('"status":"done"') == 2
    assert "15:Replace the battery when the voltage" in done.stdout


def test_what_the_examples_leave_behind_is_not_committed() -> None:
    """Each file and folder that the commands of the documentation make in a checkout is ignored by git."""
    made = ["sift-data/key", "data/key", "job.json", "again.json", "urls.txt", "serve.log", "results.jsonl"]
    git = ["git", "-C", str(ROOT), "check-ignore", "--no-index", *made]
    done = subprocess.run(git, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == 128:
        pytest.skip("no checkout")
    assert done.stdout.split() == made
