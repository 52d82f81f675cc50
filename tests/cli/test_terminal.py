"""What a person sees when standard output and standard error are one terminal, and when it goes away."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.real

_LOOPBACK = ("--allow", "127.0.0.0/8", "--allow", "::1/128", "--ports", "any")
_LOOKS = re.compile(r"\x1b\[[0-9;?]*[mhl]")


class _Terminal:
    """A terminal with one command in it; `shown` is all that was written to it."""

    def __init__(self, folder, *args: str) -> None:
        self.shown = ""
        self._master, slave = os.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sift_batch", "run", *_LOOPBACK, *args],
            cwd=folder,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
            stdin=subprocess.DEVNULL,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)

    def read_until(self, text: str) -> None:
        """Read on until `text` was shown; "" reads to the end."""
        stop = time.monotonic() + 30
        while not text or text not in self.shown:
            assert time.monotonic() < stop, self.shown
            if not select.select([self._master], [], [], 1)[0]:
                continue
            try:
                data = os.read(self._master, 65_536)
            except OSError:
                data = b""
            if not data:
                assert not text, self.shown
                return
            self.shown += data.decode()

    def lines(self) -> list[str]:
        """Return the lines as they stand on the screen in the end."""
        # Going up a row and wiping it is the same as wiping it without the line feed before.
        shown = re.sub(r"\r?\n\r*\x1b\[1A(?=\x1b\[2K)", "", _LOOKS.sub("", self.shown))
        # What follows the last wiping of a row is what stands there.
        rows = shown.replace("\r\n", "\n").split("\n")
        return [row.rpartition("\x1b[2K")[2].strip("\r") for row in rows]

    def hang_up(self) -> None:
        """Take the terminal away."""
        if self._master >= 0:
            os.close(self._master)
            self._master = -1


@pytest.fixture
def terminal(tmp_path):
    """Run the command line in a terminal of its own."""
    opened: list[_Terminal] = []

    def terminal(*args: str) -> _Terminal:
        opened.append(_Terminal(tmp_path, *args))
        return opened[-1]

    yield terminal
    for one in opened:
        one.process.kill()
        one.process.wait()
        one.hang_up()


def test_the_bar_and_the_lines_don_t_collide(terminal, site):
    """On one terminal every line of results has its row to itself, and no bar is left behind."""
    window = terminal(site.url("/hold"), site.url("/a"), site.url("/later-b", "localhost"))
    window.read_until("in flight")
    site.let_go.set()
    # Drawn again after the lines.
    window.read_until("waiting as long as a host asked")
    window.process.send_signal(signal.SIGINT)
    window.read_until("")
    assert window.process.wait(30) == 130
    results = [row for row in window.lines() if "{" in row]
    assert [json.loads(row)["idx"] for row in results] == [0, 1]
    assert [row for row in window.lines() if "━" in row] == []


def test_a_signal_with_nothing_in_flight_says_so(terminal, site):
    """While the only target waits for a busy host, a signal has nothing to finish, and that is said."""
    window = terminal(site.url("/later"))
    window.read_until("waiting as long as a host asked")
    window.process.send_signal(signal.SIGINT)
    window.read_until("")
    assert window.process.wait(30) == 130
    assert "stopping: nothing is in flight" in window.lines()


def test_a_terminal_that_goes_away_stops_in_good_order(terminal, site, tmp_path, read):
    """After a hang-up the fetch in flight is finished and written to --out, and the exit code is 129."""
    window = terminal("--parallel", "1", site.url("/hold"), site.url("/b"), "--out", "o")
    window.read_until("in flight")
    window.hang_up()
    window.process.send_signal(signal.SIGHUP)
    # Time to draw the bar where nothing can be drawn any more.
    time.sleep(0.5)
    site.let_go.set()
    assert window.process.wait(30) == 129
    assert [view["status"] for view in read(tmp_path / "o")] == ["done"]
    assert site.asked == ["/hold"]


def test_failures_are_named_by_their_place(terminal, site, tmp_path):
    """Ten of the failed targets are named in the end, with place, code and reason, and never by URL."""
    (tmp_path / "in").write_text("# list\n" + "\n".join(site.url(f"/404-{n}") for n in range(12)))
    window = terminal("-f", "in", "--out", "o")
    window.read_until("")
    assert window.process.wait(30) == 1
    named = [row for row in window.lines() if "page_not_found" in row]
    assert named[0] == "line 2: page_not_found: the page does not exist (HTTP 404)"
    assert len(named) == 10
    assert any("and 2 more" in row for row in window.lines())
    assert "/404" not in window.shown


@pytest.mark.parametrize("flag", ["-q", "--json"])
def test_failures_are_named_to_people_only(terminal, site, flag):
    """With -q or --json nothing but what these promise is written."""
    window = terminal(site.url("/404"), flag, "--out", "o")
    window.read_until("")
    assert window.process.wait(30) == 1
    assert "page_not_found" not in window.shown
