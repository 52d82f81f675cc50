"""`sift-batch run` as a real process, against a real site."""

import json
import re
import resource
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import fields

import pytest

from sift_batch import Options

pytestmark = pytest.mark.real

VIEW = ["idx", "url", "status", "chars", "result", "error", "code", "hint", "retryable", "http_status"]


def test_lines_come_in_input_order_with_the_documented_fields(run, site):
    """One line for each target, in input order, with exactly the fields of a target view."""
    urls = [site.url(f"/{n}", host) for n in range(40) for host in ("127.0.0.1", "localhost")]
    done = run("run", *urls)
    assert done.code == 0, done.err
    assert [view["url"] for view in done.views] == urls
    assert [view["idx"] for view in done.views] == list(range(80))
    first = done.views[0]
    assert list(first) == VIEW
    assert first["result"]["content"] == "page /0"
    assert (first["status"], first["chars"], first["error"], first["code"]) == ("done", 7, "", "")
    assert sorted(site.asked) == sorted(f"/{n}" for n in range(40) for _ in range(2))
    assert "80 targets: 80 done" in done.err


def test_a_failed_target_is_a_line_and_exit_1(run, site):
    """A target that failed has its line in its place, and the exit code is 1."""
    done = run("run", site.url("/404"), site.url("/a"))
    assert done.code == 1
    view = done.views[0]
    assert (view["status"], view["code"], view["result"], view["http_status"]) == (
        "failed",
        "page_not_found",
        None,
        404,
    )
    assert view["error"]
    assert done.views[1]["status"] == "done"
    assert "1 done, 1 failed" in done.err


def test_a_line_comes_as_soon_as_all_before_it_are_finished(start, site):
    """A finished target's line is written while later targets are still being fetched."""
    running = start("run", site.url("/a"), site.url("/hold"))
    assert json.loads(running.process.stdout.readline())["url"] == site.url("/a")
    assert not site.let_go.is_set()
    site.let_go.set()
    assert running.end().code == 0


def test_a_line_waits_for_those_before_it(start, site):
    """A target that finished early is written after the slow one before it."""
    running = start("run", site.url("/hold"), site.url("/a"))
    assert site.holding.acquire(timeout=20)
    threading.Timer(0.3, site.let_go.set).start()
    assert [view["url"] for view in running.end().views] == [site.url("/hold"), site.url("/a")]


def test_lines_of_a_file_keep_their_number_and_what_else_they_said(run, site, tmp_path):
    """Blank and # lines are skipped; `line` counts them; other keys of an object come back as `input`."""
    (tmp_path / "in.txt").write_bytes(
        b"\xef\xbb\xbf# list\r\n\r\n"
        + site.url("/a").encode()
        + b"\r\n"
        + json.dumps({"url": site.url("/b"), "id": [1, {"x": None}], "options": {"mode": "raw"}}).encode()
    )
    done = run("run", "-f", "in.txt")
    assert done.code == 0, done.err
    first, second = done.views
    assert (first["line"], second["line"]) == (3, 4)
    assert "input" not in first
    assert second["input"] == {"id": [1, {"x": None}]}


def test_standard_input_is_a_file_too(run, site):
    """`-f -` reads targets from standard input, after those of the arguments."""
    done = run("run", site.url("/a"), "-f", "-", stdin=site.url("/b").encode())
    assert [view["url"] for view in done.views] == [site.url("/a"), site.url("/b")]
    assert "line" not in done.views[0]
    assert done.views[1]["line"] == 1


@pytest.mark.parametrize(
    "flags",
    [
        ("--jq", ".secret |"),
        ("--grep", "secret("),
        ("--pages", "0"),
        ("--question", "?!"),
        ("--context",),
        ("--mode", "secret"),
        ("--jq", ".", "--pages", "1"),
    ],
    ids=lambda flags: " ".join(flags),
)
def test_a_flag_with_a_bad_value_is_refused(run, site, flags):
    """Exit 2 and two lines that name the option and not its value, before anything is fetched."""
    done = run("run", *flags, site.url("/a"))
    assert (done.code, done.out, done.err.count("\n")) == (2, b"", 2)
    assert flags[0].removeprefix("--") in done.err
    assert "secret" not in done.err
    assert site.asked == []


def test_the_help_offers_every_option(run):
    """Each field of `Options` has a flag."""
    told = run("run", "--help").out.decode()
    assert all(f"--{field.name}" in told for field in fields(Options))


def test_an_option_of_every_kind_reaches_the_page(run, site):
    """A flag is the option of each target whose line does not say it; a line's own wins."""
    line = json.dumps({"url": site.url("/b"), "options": {"grep": "nowhere"}}).encode()
    done = run("run", "--grep", "page", site.url("/a"), "-f", "-", stdin=line)
    first, second = done.views
    assert (first["result"]["content"], first["result"]["meta"]["matches"]) == ("1:page /a", 1)
    assert (second["result"]["content"], second["code"]) == ("", "no_match")


def test_a_bad_program_in_the_middle_is_named_by_its_line(run, site):
    """A jq program that does not compile is found before anything is fetched, in whichever line it is."""
    lines = [
        json.dumps({"url": site.url(f"/{n}"), "options": {"jq": program}})
        for n, program in enumerate((".", ".[", ".", ".["))
    ]
    done = run("run", "-f", "-", stdin="\n".join(lines).encode())
    assert done.code == 2
    assert [line.split(": ")[1] for line in done.err.splitlines()] == [
        "standard input, line 2",
        "standard input, line 4",
        "2 bad inputs; nothing was fetched",
    ]
    assert site.asked == []


def test_private_addresses_are_refused_unless_allowed(run, site):
    """Without --allow and --ports a target on this machine is a bad input, and nobody is called."""
    for flags in (
        (),
        ("--ports", "any"),
        ("--allow", "10.0.0.0/8", "--ports", "any"),
        ("--allow", "127.0.0.0/8"),
    ):
        done = run("run", *flags, site.url("/a"), guarded=True)
        assert (done.code, done.out) == (2, b"")
        assert ("--allow" if "any" in flags else "--ports") in done.err
    assert site.asked == []
    done = run("run", "--allow", "127.0.0.1", "--ports", str(site.port), site.url("/a"), guarded=True)
    assert done.code == 0


@pytest.mark.parametrize(
    "flags",
    [
        ("--allow", "10.0.0.1/8"),
        ("--allow", "secret:"),
        ("--allow", "300.1.1.1"),
        ("--allow", "10.0.0"),
        ("--allow", "s\u00e9cret"),
        ("--allow", ""),
        ("--ports", "secret"),
        ("--ports", "0"),
        ("--ports", "80,"),
        ("--ports", "70000"),
        ("--ca-file", "secret"),
    ],
    ids=lambda flags: "=".join(flags),
)
def test_a_bad_rule_is_refused(run, flags):
    """Exit 2 and one line that names the flag."""
    done = run("run", *flags, "http://example.org/", guarded=True)
    assert (done.code, done.out, done.err.count("\n")) == (2, b"", 1)
    assert flags[0] in done.err
    assert "secret" not in done.err


@pytest.mark.parametrize(
    "line",
    [
        b"ftp://example.org/secret",
        b"example.org/secret",
        b"http://user:secret@example.org/",
        b"http://example.org/secret\0",
        b"http://example.org/secret\xff",
        b'{"url": "http://example.org/secret"',
        b'{"uri": "http://example.org/secret"}',
        b'{"url": 7, "secret": 1}',
        b'{"url": "http://example.org/secret", "options": {"mood": 1}}',
        b'{"url": "http://example.org/secret", "options": {"mode": 1}}',
        b'{"url": "http://example.org/secret", "options": []}',
        b'{"url": "http://example.org/secret", "options": {"grep": "secret("}}',
        b'{"url": "http://example.org/secret", "options": {"jq": "secret("}}',
        b'{"url": "http://127.0.0.1/secret", "options": {"pages": "0"}}',
        b'{"url": "http://example.org/secret", "options": {"mode": "secret"}}',
        b'["http://example.org/secret"]',
        b'"http://example.org/secret"',
        b'{"url": "http://example.org/secret", "n": ' + b"9" * 5_000 + b"}",
        b'{"url": "http://example.org/secret", "n": 1e999}',
        b'{"url": "http://example.org/secret", "n": NaN}',
        b'{"url": "http://example.org/secret", "n": "\\ud800"}',
        b'{"url": "http://example.org/secret", "url": "http://example.org/"}',
        b'{"url": "http://example.org/secret", "n": ' + b"[" * 200 + b"]" * 200 + b"}",
        b'{"url": "http://example.org/secret", "n": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b"http://example.org/" + b"secret" * 400_000,
    ],
    ids=lambda line: line[:60],
)
def test_a_bad_line_is_named_and_nothing_is_fetched(run, site, tmp_path, line):
    """Exit 2, the line's number, no traceback, nothing of the line itself, and no request."""
    (tmp_path / "in").write_bytes(site.url("/a").encode() + b"\n\n" + line + b"\n" + site.url("/b").encode())
    done = run("run", "-f", "in")
    assert done.code == 2
    assert "in, line 3: " in done.err
    assert len(done.err.splitlines()) == 2
    assert "Traceback" not in done.err
    assert "secret" not in done.err
    assert done.out == b""
    assert site.asked == []


def test_every_bad_input_is_named(run):
    """All bad arguments and lines are named in one go."""
    done = run("run", "ftp://x/", "http://example.org/", "y", "-f", "-", stdin=b"z\nhttp://example.org/\n{\n")
    assert done.code == 2
    named = [line.split(": ")[1] for line in done.err.splitlines()]
    assert named == [
        "URL argument 1",
        "URL argument 3",
        "standard input, line 1",
        "standard input, line 3",
        "4 bad inputs; nothing was fetched",
    ]


@pytest.mark.parametrize("content", [b"", b"\n\n# nothing\n", b"\xef\xbb\xbf"])
def test_no_targets_is_a_usage_error(run, content):
    """An input without a target is exit 2, and the line says what to do."""
    done = run("run", "-f", "-", stdin=content)
    assert done.code == 2
    assert "give URLs" in done.err


@pytest.mark.parametrize("name", ["nowhere", "."])
def test_an_input_that_cant_be_read_is_exit_2(run, name):
    """A missing file or a folder is one line and exit 2."""
    done = run("run", "-f", name)
    assert done.code == 2
    assert len(done.err.splitlines()) == 1


def test_out_writes_the_file_and_removes_its_store_when_all_is_done(run, site, tmp_path, read):
    """With --out the lines are in the file, and nothing is left beside it once all are done."""
    done = run("run", site.url("/a"), site.url("/b"), "--out", "out.jsonl")
    assert (done.code, done.out) == (0, b"")
    assert [view["url"] for view in read(tmp_path / "out.jsonl")] == [site.url("/a"), site.url("/b")]
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


def test_a_second_run_fetches_only_what_failed(run, site, tmp_path, read):
    """The store is kept after a failure; the next run carries the done targets over and says so."""
    urls = [site.url("/a"), site.url("/404"), site.url("/b")]
    assert run("run", *urls, "--out", "o").code == 1
    assert (tmp_path / "o.sift").exists()
    site.asked.clear()
    done = run("run", *urls, site.url("/new"), "--out", "o")
    assert done.code == 1
    assert sorted(site.asked) == ["/404", "/new"]
    assert "2 done targets are carried over from an earlier run, 2 are left; those that failed" in done.err
    assert "4 targets: 3 done, 1 failed" in done.err
    assert "the same command again tries failed targets again" in done.err
    views = read(tmp_path / "o")
    assert [view["status"] for view in views] == ["done", "failed", "done", "done"]
    assert views[2]["result"]["content"] == "page /b"


@pytest.mark.parametrize("others", [("--mode", "raw", "/a", "/404"), ("/c",)], ids=["options", "urls"])
def test_results_that_nothing_would_carry_over_are_not_lost(run, site, tmp_path, others):
    """A run to which none of the done results belongs is refused; output and store stay as they were."""
    assert run("run", site.url("/a"), site.url("/b"), site.url("/404"), "--out", "o").code == 1
    before = (tmp_path / "o").read_bytes()
    site.asked.clear()
    others = tuple(site.url(item) if item.startswith("/") else item for item in others)
    done = run("run", *others, "--out", "o")
    assert (done.code, done.err.count("\n"), site.asked) == (2, 1, [])
    assert "o.sift keeps 2 done results of an earlier run" in done.err
    assert "--out" in done.err
    assert "--fresh" in done.err
    assert (tmp_path / "o").read_bytes() == before
    assert run("run", site.url("/a"), site.url("/404"), "--out", "o").code == 1
    assert site.asked == ["/404"]
    assert run("run", *others, "--out", "o", "--fresh").code in (0, 1)


def test_options_are_part_of_what_is_carried_over(run, site, tmp_path):
    """A done target with other options is not the same target: where some are carried over, it is fetched."""
    assert run("run", site.url("/a"), site.url("/b"), site.url("/404"), "--out", "o").code == 1
    site.asked.clear()
    lines = json.dumps({"url": site.url("/b"), "options": {"mode": "raw"}}).encode()
    assert run("run", site.url("/a"), "-f", "-", "--out", "o", stdin=lines).code == 0
    assert site.asked == ["/b"]


def test_many_bad_inputs_take_few_lines(run):
    """Twenty complaints are written out, the others named by number; --json has one object for each."""
    # Neighbours differ in what is wrong with them, or they would share a message.
    lines = b"x\nftp://x/\n" * 15 + b"http://example.org/\n" + b"x\nftp://x/\n" * 6
    done = run("run", "-f", "-", stdin=lines)
    said = done.err.splitlines()
    assert (done.code, len(said)) == (2, 22)
    assert said[-2].endswith("and 22 more: lines 21-30, lines 32-43")
    assert said[-1].endswith("42 bad inputs; nothing was fetched")
    assert len(run("run", "--json", "-f", "-", stdin=lines).err.splitlines()) == 43


def test_each_of_many_scattered_bad_lines_is_named(run):
    """However many runs of bad lines there are, the number of each stands on standard error."""
    said = run("run", "-f", "-", stdin=b"x\nhttp://example.org/\n" * 300).err.splitlines()
    assert len(said) < 30
    numbers = {int(number) for number in re.findall(r"line (\d+)", " ".join(said))}
    assert numbers == set(range(1, 601, 2))
    counts = [int(more[1]) for more in map(re.compile("and ([0-9]+) more").search, said) if more]
    assert sum(counts) == 280


@pytest.mark.parametrize("half", ["127.0.0.0/8", "::1/128"])
def test_localhost_that_is_allowed_by_half_is_told_so(run, site, half):
    """The refusal of localhost says that both of its addresses must be allowed."""
    done = run("run", "--allow", half, "--ports", "any", site.url("/a", "localhost"), guarded=True)
    assert done.code == 2
    assert "localhost stands for 127.0.0.1 and ::1: --allow both" in done.err


def test_fresh_ignores_what_is_done(run, site):
    """--fresh fetches everything again, and what an earlier run did is forgotten for good."""
    assert run("run", site.url("/a"), site.url("/404"), "--out", "o").code == 1
    site.asked.clear()
    assert run("run", site.url("/404"), "--out", "o", "--fresh").code == 1
    assert run("run", site.url("/a"), site.url("/404"), "--out", "o").code == 1
    assert sorted(site.asked) == ["/404", "/404", "/a"]


def test_the_output_holds_this_run_s_lines_only(run, site, tmp_path, read):
    """Lines of an earlier run with more targets don't stay in the file."""
    assert run("run", *[site.url(f"/404{n}") for n in range(9)], "--out", "o").code == 1
    assert run("run", site.url("/a"), "--out", "o").code == 0
    assert [view["url"] for view in read(tmp_path / "o")] == [site.url("/a")]


def test_equal_targets_are_all_fetched(run, site):
    """The same URL many times over is that many targets, in jobs of their own."""
    done = run("run", *[site.url("/a")] * 70)
    assert (done.code, len(done.views), len(site.asked)) == (0, 70, 70)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_stores_what_is_in_flight_and_a_second_run_carries_on(
    start, run, site, tmp_path, read, number, code
):
    """The fetch in flight is finished and stored, which is said; the next run fetches the rest."""
    args = ("run", "--parallel", "1", site.url("/a"), site.url("/hold"), site.url("/b"), "--out", "o")
    running = start(*args)
    assert site.holding.acquire(timeout=20)
    running.signal(number)
    assert b"1 fetch in flight will be finished and stored, in 105 s" in running.process.stderr.readline()
    site.let_go.set()
    done = running.end()
    assert done.code == code
    assert "2 done, 1 not fetched" in done.err
    assert [view["url"] for view in read(tmp_path / "o")] == [site.url("/a"), site.url("/hold")]
    assert "/b" not in site.asked
    site.asked.clear()
    done = run(*args)
    assert done.code == 0, done.err
    assert site.asked == ["/b"]
    assert [view["idx"] for view in read(tmp_path / "o")] == [0, 1, 2]
    assert not (tmp_path / "o.sift").exists()


def test_a_second_signal_ends_at_once(start, site, tmp_path):
    """The second signal does not wait for the fetch in flight, and says what is kept."""
    running = start("run", site.url("/hold"), "--out", "o")
    assert site.holding.acquire(timeout=20)
    running.signal(signal.SIGINT)
    running.process.stderr.readline()
    began = time.monotonic()
    running.signal(signal.SIGINT)
    done = running.end()
    assert done.code == 130
    assert "what is done is kept in o.sift" in done.err
    assert time.monotonic() - began < 5


def test_a_killed_run_is_carried_on(start, run, site, tmp_path, read):
    """After kill -9 the next run keeps what was done and fetches the rest."""
    args = ("run", "--parallel", "1", site.url("/a"), site.url("/hold"), site.url("/b"), "--out", "o")
    running = start(*args)
    assert site.holding.acquire(timeout=20)
    running.process.kill()
    running.end()
    site.let_go.set()
    site.asked.clear()
    done = run(*args)
    assert done.code == 0, done.err
    assert site.asked == ["/hold", "/b"]
    assert len(read(tmp_path / "o")) == 3


def test_a_reader_that_leaves_is_no_error(start, site):
    """When nobody reads the lines any more, the run ends soon and says nothing."""
    running = start("run", "-q", *[site.url(f"/big{n}") for n in range(100)], site.url("/hold"))
    running.process.stdout.readline()
    running.process.stdout.close()
    running.process.stdin.close()
    assert running.process.wait(30) == 1
    assert running.process.stderr.read() == b""


def test_a_store_in_use_is_exit_3_and_its_output_is_left_alone(start, run, site, tmp_path):
    """A second run on the same output is refused; it does not touch the file of the first."""
    running = start("run", "--parallel", "1", site.url("/a"), site.url("/hold"), "--out", "o")
    assert site.holding.acquire(timeout=20)
    done = run("run", site.url("/b"), "--out", "o")
    assert done.code == 3
    assert done.err.startswith("sift-batch: o.sift: another sift-batch run is using it")
    assert done.err.count("\n") == 1
    assert (tmp_path / "o").read_bytes().count(b"\n") == 1
    site.let_go.set()
    assert running.end().code == 0


@pytest.mark.parametrize("kind", ["text", "other database", "missing folder", "out is a folder"])
@pytest.mark.parametrize("flags", [(), ("--fresh",)])
def test_a_store_or_output_that_cant_be_used_is_exit_3(run, site, tmp_path, kind, flags):
    """What is no store of ours, and an output that can't be opened, is one line with its name and exit 3."""
    out = "o"
    if kind == "text":
        (tmp_path / "o.sift").write_text("my diary")
    elif kind == "other database":
        with sqlite3.connect(tmp_path / "o.sift") as connection:
            connection.execute("CREATE TABLE t (x)")
        connection.close()
    else:
        out = "no/such/o" if kind == "missing folder" else "."
    done = run("run", site.url("/a"), "--out", out, *flags)
    assert (done.code, done.err.count("\n")) == (3, 1)
    assert ("o.sift: " if out == "o" else out) in done.err
    assert kind != "missing folder" or "the folder no/such does not exist" in done.err
    assert site.asked == []
    assert not (tmp_path / "o").exists()
    if kind == "text":
        assert (tmp_path / "o.sift").read_text() == "my diary"


def test_input_and_output_may_not_be_the_same_file(run, site, tmp_path):
    """--out on the file of -f is refused, and the file is as it was."""
    (tmp_path / "f").write_text(site.url("/a"))
    done = run("run", "-f", "f", "--out", "f")
    assert done.code == 2
    assert (tmp_path / "f").read_text() == site.url("/a")


def _full_disk(limit: int) -> Callable[[], None]:
    """Let the process write no file beyond `limit` bytes."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


@pytest.mark.slow
@pytest.mark.parametrize("limit", [150_000, 500_000, 1_500_000])
def test_a_full_disk_is_exit_3_and_what_is_done_is_kept(run, site, limit):
    """When nothing can be written any more the run ends with exit 3; the next one carries on."""
    urls = [site.url(f"/big{n}") for n in range(30)]
    done = run("run", *urls, "--out", "o", preexec_fn=_full_disk(limit))
    assert done.code == 3
    assert "Traceback" not in done.err
    asked = len(site.asked)
    done = run("run", *urls, "--out", "o")
    assert done.code == 0, done.err
    # At most what was in flight on eight workers is fetched a second time.
    assert len(site.asked) <= 30 + 8
    assert "carried over" in done.err or asked <= 8


@pytest.mark.parametrize("limit", [0, 40_000])
def test_no_room_for_a_store_is_exit_3(run, site, limit):
    """When not even an empty store fits, the run says so and fetches nothing."""
    done = run("run", site.url("/a"), "--out", "o", preexec_fn=_full_disk(limit))
    assert done.code == 3
    assert "Traceback" not in done.err
    assert site.asked == []


def test_a_busy_host_is_waited_for(run, site):
    """A 429 with Retry-After is no failure: the target is fetched after that time."""
    began = time.monotonic()
    done = run("run", site.url("/busy"))
    assert (done.code, site.asked) == (0, ["/busy", "/busy"])
    assert time.monotonic() - began >= 1


def test_plain_locale_and_odd_names(run, site, tmp_path, read):
    """With LANG=C and nothing but ASCII in reach, URLs and file names of other scripts still work."""
    plain = {"LC_ALL": "C", "LANG": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    (tmp_path / "täst").write_bytes(site.url("/grün").encode() + b"\nbad\x1b[2J\n")
    done = run("run", "-f", "täst", env=plain)
    assert done.code == 2
    assert "line 2" in done.err
    assert "\x1b" not in done.err
    (tmp_path / "täst").write_bytes(site.url("/grün").encode())
    done = run("run", "-f", "täst", "--out", "öut", env=plain)
    assert done.code == 0, done.err
    assert read(tmp_path / "öut")[0]["result"]["content"] == "page /gr%C3%BCn"


def test_lines_are_ascii_without_controls(run, site):
    """Whatever a page or an input key holds, a line of output is printable ASCII."""
    line = json.dumps({"url": site.url("/ü"), "k": "\x1b]0;x\x07\x7f\x9b31m\u202e"}).encode()
    done = run("run", "-f", "-", stdin=line)
    assert done.code == 0
    assert all(32 <= byte < 127 for byte in done.out.rstrip(b"\n"))
    assert done.views[0]["input"] == {"k": "\x1b]0;x\x07\x7f\x9b31m\u202e"}


def test_quiet_says_nothing(run, site):
    """-q leaves standard error empty on a run without trouble, with --json too."""
    assert run("run", "-q", site.url("/a")).err == ""
    assert run("run", "-q", "--json", site.url("/a")).err == ""


def test_json_gives_a_summary(run, site):
    """With --json the summary is one JSON object: on standard output when the lines have a file."""
    done = run("run", "--json", site.url("/a"), site.url("/404"), "--out", "o")
    summary = json.loads(done.out)
    assert summary.pop("seconds") > 0
    assert summary == {
        "total": 2,
        "done": 1,
        "failed": 1,
        "not_fetched": 0,
        "carried": 0,
        "out": "o",
        "store": "o.sift",
        "error": "",
    }
    done = run("run", "--json", site.url("/a"))
    assert json.loads(done.err)["done"] == 1


def test_a_process_never_says_a_target_by_itself(run, site):
    """Notes and errors on standard error name no URL, with every logger there is at full volume."""
    done = run("run", site.url("/404-secret"), site.url("/busy-secret"), env={"PYTHONWARNINGS": "always"})
    assert done.code == 1
    assert "secret" not in done.err
    assert str(site.port) not in done.err
