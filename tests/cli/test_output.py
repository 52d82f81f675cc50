"""What happens to the file of --out, and what a signal leaves to be said."""

import signal
import time

import pytest

pytestmark = pytest.mark.real


def test_a_finished_output_is_not_written_over(run, site, tmp_path):
    """A file with lines and no store beside it is refused with exit 2, and stays as it is."""
    args = ("run", site.url("/a"), "--out", "o")
    assert run(*args).code == 0
    before = (tmp_path / "o").read_bytes()
    site.asked.clear()
    done = run(*args)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "--fresh" in done.err
    assert (tmp_path / "o").read_bytes() == before
    assert site.asked == []
    assert [path.name for path in tmp_path.iterdir()] == ["o"]
    assert run(*args, "--fresh").code == 0
    assert site.asked == ["/a"]


def test_lines_that_an_empty_store_could_not_give_again_are_kept(run, site, tmp_path):
    """A store without jobs beside a file with lines is no reason to write over the file."""
    assert run("run", site.url("/404"), "--out", "o").code == 1
    (tmp_path / "o.sift").unlink()
    (tmp_path / "o.sift").touch()
    before = (tmp_path / "o").read_bytes()
    done = run("run", site.url("/a"), "--out", "o")
    assert (done.code, done.err.count("\n")) == (3, 1)
    assert "--fresh" in done.err
    assert (tmp_path / "o").read_bytes() == before


def test_an_empty_output_is_written(run, site, tmp_path, read):
    """A file without lines has nothing to lose."""
    (tmp_path / "o").touch()
    assert run("run", site.url("/a"), "--out", "o").code == 0
    assert len(read(tmp_path / "o")) == 1


def test_a_dash_is_no_output_file(run, site, tmp_path):
    """`--out -` is refused with a word on what to do, and makes no file of that name."""
    done = run("run", site.url("/a"), "--out", "-")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "standard output" in done.err
    assert list(tmp_path.iterdir()) == []


def test_one_target_is_one_target(run, site):
    """A count of one has its noun in the singular."""
    assert "1 target: 1 done" in run("run", site.url("/a")).err
    assert "1 bad input;" in run("run", "x").err


def test_an_interrupted_run_says_where_the_results_without_a_line_are(start, run, site, read, tmp_path):
    """After a signal, results behind one that is missing have no line yet; a note says where they are."""
    # Two jobs: one has the places 0, 3 and 4, the other 1, 2 and 5.
    urls = [site.url("/hold")] + [
        site.url(f"/{n}", "localhost" if n % 2 else "127.0.0.1") for n in range(1, 6)
    ]
    args = ("run", "--parallel", "2", *urls, "--out", "o")
    running = start(*args)
    while "/5" not in site.asked:
        assert running.process.poll() is None
        time.sleep(0.01)
    running.signal(signal.SIGINT)
    running.process.stderr.readline()
    site.let_go.set()
    done = running.end()
    assert done.code == 130
    assert "4 done, 2 not fetched" in done.err
    assert "lines come in input order; 1 further result is in the store" in done.err
    assert [view["idx"] for view in read(tmp_path / "o")] == [0, 1, 2]
    assert run(*args).code == 0
    assert len(read(tmp_path / "o")) == 6


def test_nohup_stays_nohup(start, site):
    """A run that was started with SIGHUP ignored goes on when the terminal is closed."""
    ignore = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    running = start("run", site.url("/hold"), **ignore)
    assert site.holding.acquire(timeout=20)
    running.signal(signal.SIGHUP)
    site.let_go.set()
    done = running.end()
    assert (done.code, len(done.views)) == (0, 1)
