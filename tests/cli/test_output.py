"""What happens to the file of --out, and what a signal leaves to be said."""

import os
import signal
import sqlite3
import subprocess
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


def test_a_stored_result_that_cant_be_read_is_fetched_again(run, site, tmp_path, read):
    """A done target whose stored result is damaged is fetched again; the output has all lines."""
    urls = [site.url("/a"), site.url("/b"), site.url("/404")]
    assert run("run", *urls, "--out", "o").code == 1
    with sqlite3.connect(tmp_path / "o.sift") as connection:
        connection.execute("UPDATE batch_target SET result = x'7b7b' WHERE url LIKE '%/a'")
    connection.close()
    site.asked.clear()
    done = run("run", *urls, "--out", "o")
    assert done.code == 1
    assert sorted(site.asked) == ["/404", "/a"]
    assert "1 stored result of an earlier run can't be read" in done.err
    assert [view["status"] for view in read(tmp_path / "o")] == ["done", "done", "failed"]
    site.asked.clear()
    assert "can't be read" not in run("run", *urls, "--out", "o").err
    assert site.asked == ["/404"]


@pytest.mark.parametrize("flags", [(), ("--json",), ("-q",)])
def test_a_closed_standard_error_is_no_reason_to_stop(run, site, flags):
    """With standard error closed the lines are written, and a bad target still gives its exit code."""
    close = {"preexec_fn": lambda: os.close(2)}
    done = run("run", site.url("/a"), *flags, **close)
    assert (done.code, len(done.views), done.err) == (0, 1, "")
    assert run("run", "no-url", *flags, **close).code == 2


@pytest.mark.parametrize("length", [243, 252])
def test_a_name_too_long_for_a_store_is_exit_3(run, site, tmp_path, length):
    """When the store's or a side file's name would be too long, nothing is fetched and one line says so."""
    done = run("run", site.url("/a"), "--out", "o" * length)
    assert (done.code, done.err.count("\n")) == (3, 1)
    assert "too long" in done.err
    assert site.asked == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("out", "code"), [("/dev/null", 0), ("/dev/full", 3), ("/dev/stdout", 0)])
def test_a_device_or_pipe_has_no_store_beside_it(run, site, out, code):
    """An output that is no regular file is written, and a note says that nothing is kept."""
    done = run("run", site.url("/a"), "--out", out)
    assert done.code == code
    assert "nothing is kept" in done.err
    assert len(done.views) == (out == "/dev/stdout")
    assert not os.path.lexists(f"{out}.sift")


def test_a_named_pipe_is_written_to_its_reader(start, site, tmp_path):
    """A named pipe takes the lines, and no store is made beside it."""
    os.mkfifo(tmp_path / "p")
    with subprocess.Popen(["cat", tmp_path / "p"], stdout=subprocess.PIPE) as reader:
        done = start("run", site.url("/a"), "--out", "p").end()
        assert reader.stdout.read().count(b"\n") == 1
    assert done.code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["p"]
