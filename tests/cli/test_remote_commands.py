"""The commands against a service: the command line in this process, a live service in a thread of it."""

import json
import threading

import pytest
from remote_rig import Live, ran

from sift_batch import TargetError

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("in_this_process")]

UNKNOWN = "sift-batch: no such job; `sift-batch list` shows your jobs\n"


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """A service for all tests here; each has URLs of its own."""
    live = Live(tmp_path_factory.mktemp("live") / "data", **{"engine.jobs_per_caller": 16})
    live.start()
    yield live
    live.stop()


@pytest.fixture
def submitted(sift):
    """Submit URLs, wait for the end, and give the id."""

    def submitted(*urls: str) -> str:
        return sift("submit", "-q", "--wait", *urls).out.strip()

    return submitted


def bad(live, url: str) -> str:
    """Let a page be missing; give its URL."""
    live.fetch.fail(url, TargetError("the site has no such page", code="page_not_found", status=404))
    return url


# ---- submit


def test_submit_prints_the_id_and_nothing_else(sift):
    """Standard output is the id on a line; standard error is empty."""
    said = sift("submit", "http://a.example/submit-1", "http://a.example/submit-2")
    assert (said.code, said.err) == (0, "")
    assert len(said.out.strip()) == 32
    assert sift("status", "--json", said.out.strip()).json["targets"]["total"] == 2


def test_service_and_key_can_come_from_the_environment(live, capfd, monkeypatch):
    """SIFT_BATCH_SERVER and SIFT_BATCH_KEY stand for the flags."""
    monkeypatch.setenv("SIFT_BATCH_SERVER", live.url)
    monkeypatch.setenv("SIFT_BATCH_KEY", live.key_file.read_text())
    assert ran(capfd, "list").code == 0


def test_submit_wait_says_how_it_ended(live, sift):
    """With --wait the exit code is 1 when a target failed, and the line says what to do."""
    said = sift("submit", "--wait", "http://a.example/wait", bad(live, "http://a.example/wait-bad"))
    assert said.out.strip()
    assert said.code == 1
    assert said.err.splitlines() == [
        "partial: 2 targets: 1 done, 1 failed",
        "1 failed, not retryable: a rerun won't help",
    ]
    assert sift("submit", "-q", "--wait", "http://a.example/fine").code == 0


def test_submit_json_is_the_job(sift):
    """With --json standard output is the job's view, settled with --wait."""
    said = sift("submit", "--json", "--wait", "http://a.example/json")
    assert said.json["settled"]
    assert said.json["targets"]["done"] == 1
    assert json.loads(said.err) == {"note": "done: 1 target: 1 done"}


def test_an_equal_job_is_joined_and_told(live, sift, submitted):
    """The same targets give the same id, unless --max-age says that it is too old."""
    urls = ("http://a.example/equal", bad(live, "http://a.example/equal-bad"))
    job_id = submitted(*urls)
    again = sift("submit", *urls)
    assert again.out.strip() == job_id
    assert "an equal job is there already" in again.err
    assert "a rerun won't help" in again.err
    assert sift("submit", "--max-age", "0", *urls).out.strip() != job_id


def test_input_of_submit_is_that_of_run(live, sift, tmp_path):
    """Comments, BOM, CRLF, options of a line and of flags are read as by `run`; other keys stay here."""
    lines = [
        '{"url": "http://a.example/f1", "options": {"mode": "raw"}, "note": 7}',
        "# no",
        "",
        "http://a.example/f2",
    ]
    path = tmp_path / "urls.txt"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    said = sift("submit", "--wait", "--mode", "text", "--no-context", "-f", str(path))
    assert said.code == 0
    assert 'other keys of a line than "url" and "options" are not sent' in said.err
    asked = {call.target.url: call.target.options for call in live.fetch.calls}
    assert asked["http://a.example/f1"].mode == "raw"
    assert asked["http://a.example/f2"].mode == "text"
    assert asked["http://a.example/f2"].context is False


def test_each_bad_target_is_named_by_its_line(live, sift, tmp_path):
    """What the service refuses is told by argument and line, with exit 2, and nothing is submitted."""
    path = tmp_path / "urls.txt"
    path.write_text("http://a.example/ok\n\nhttp://a.example/refused\n")
    live.fetch.refuse["http://a.example/refused"] = TargetError("no such port", code="refused", hint="use 80")
    said = sift("submit", "-f", str(path), "", "http://a.example/" + "x" * 9_000)
    assert said.code == 2
    assert said.out == ""
    assert said.err.splitlines() == [
        "sift-batch: URL arguments 1-2: the URL must have from 1 to 8,192 characters",
        f"sift-batch: {path}, line 3: no such port; use 80",
        "sift-batch: 3 bad inputs; nothing was submitted",
    ]
    said = sift("submit", "--json", "-f", str(path))
    assert [json.loads(line) for line in said.err.splitlines()] == [
        {"error": f"{path}, line 3: no such port; use 80", "line": 3},
        {"error": "1 bad input; nothing was submitted"},
    ]


@pytest.mark.parametrize("content", [b"", b"\n \n# only comments\n", b"\xef\xbb\xbf"])
def test_no_targets_is_exit_2(sift, tmp_path, content):
    """An input without a target is a usage error."""
    path = tmp_path / "urls.txt"
    path.write_bytes(content)
    said = sift("submit", "-f", str(path))
    assert (said.code, said.out) == (2, "")
    assert "there is nothing to fetch" in said.err


@pytest.mark.parametrize("content", [b"\xff\xfeh\0t\0t\0p", b"{", b'{"url": 1}', b'{"url": "x", "url": "y"}'])
def test_odd_lines_are_named(sift, tmp_path, content):
    """A line that can't be read is named by its number, and nothing is submitted."""
    path = tmp_path / "urls.txt"
    path.write_bytes(b"http://a.example/\n" + content)
    said = sift("submit", "-f", str(path))
    assert said.code == 2
    assert "line 2: " in said.err
    assert said.err.endswith("nothing was submitted\n")


def test_a_nul_is_the_services_to_refuse(sift, tmp_path):
    """A NUL in a line ends as one line on standard error and exit 2, as whatever is no URL."""
    path = tmp_path / "urls.txt"
    path.write_bytes(b"http://a.example/\0x\n")
    said = sift("submit", "-f", str(path))
    assert said.code == 2
    assert "\0" not in said.err


@pytest.mark.parametrize("count", [33, 5_000])
def test_more_targets_than_a_job_may_have_is_told(sift, tmp_path, count):
    """Too many targets are refused with what to do, however many there are."""
    path = tmp_path / "urls.txt"
    path.write_text("".join(f"http://a.example/{n}\n" for n in range(count)))
    said = sift("submit", "-f", str(path))
    assert said.code == 2
    assert said.err == (
        f"sift-batch: a job may have at most 32 targets, these are {count:,}; "
        "submit the rest when this job has ended (`--wait`), use `sift-batch run`, or have the operator "
        "raise engine.targets_per_job\n"
    )


# ---- status, list


def test_status_shows_a_live_job_and_a_settled_one(live, sift):
    """The lines say what is done, what goes on, and what to do next; exit 0 either way."""
    live.fetch.hang("http://a.example/status-hang")
    job_id = sift(
        "submit", "http://a.example/status-hang", bad(live, "http://a.example/status-bad")
    ).out.strip()
    live.fetch.calls.clear()
    said = sift("status", job_id)
    assert said.code == 0
    assert "targets   2: " in said.out
    assert "now       " in said.out or "queued" in said.out
    timer = threading.Timer(0.2, live.release)
    timer.start()
    said = sift("status", "--wait", "30", job_id)
    timer.join()
    assert said.code == 0
    assert "status    partial" in said.out
    assert "targets   2: 1 done, 1 failed" in said.out
    assert "next      1 failed, not retryable: a rerun won't help" in said.out
    assert sift("status", "--json", job_id).json["id"] == job_id


def test_list_has_all_jobs_and_only_those_asked_for(sift, submitted):
    """Newest first, one line each below the head; --status and --limit choose; --json is one object."""
    ids = [submitted(f"http://a.example/list-{n}") for n in range(3)]
    said = sift("list", "--status", "done")
    assert said.out.startswith("ID")
    rows = said.out.splitlines()[1:]
    assert [row.split()[0] for row in rows[:3]] == ids[::-1]
    assert rows[0].split()[1:3] == ["done", "1/1"]
    found = sift("list", "--json", "--limit", "2").json
    assert [view["id"] for view in found["items"]] == ids[:0:-1]
    said = sift("list", "--status", "queued")
    assert (said.code, said.out, said.err) == (0, "", "there are no queued jobs\n")


def test_a_list_of_many_pages_is_read_to_its_end(monkeypatch, sift, submitted):
    """All jobs come, each once, however many pages they take."""
    import sift_batch.cli.list_command as list_command

    for n in range(3):
        submitted(f"http://a.example/pages-{n}")
    whole = [view["id"] for view in sift("list", "--json").json["items"]]
    monkeypatch.setattr(list_command, "_PAGE", 1)
    assert [view["id"] for view in sift("list", "--json").json["items"]] == whole
    assert len(set(whole)) == len(whole)


# ---- results


def test_results_are_lines_as_run_writes_them(live, sift, submitted):
    """One line of ASCII for each target, in input order, with its fields; exit 1 where one failed."""
    live.fetch.answer("http://a.example/r1", "zwölf\u202e\x1b[2J")
    job_id = submitted("http://a.example/r1", bad(live, "http://a.example/r2"), "http://a.example/r3")
    said = sift("results", job_id)
    assert said.code == 1
    assert [view["idx"] for view in said.views] == [0, 1, 2]
    assert said.views[0]["result"]["content"] == "zwölf\u202e\x1b[2J"
    assert said.out.isascii()
    assert "\x1b" not in said.out
    fields = ["idx", "url", "status", "chars", "result", "error", "code", "hint", "retryable", "http_status"]
    assert list(said.views[1]) == fields
    assert (said.views[1]["code"], said.views[1]["http_status"]) == ("page_not_found", 404)
    assert said.err.startswith("partial: 3 targets: 2 done, 1 failed\n")
    assert [view["idx"] for view in sift("results", "--status", "failed", job_id).views] == [1]


def test_results_of_a_live_job_are_what_is_finished(live, sift):
    """Without --follow the lines up to the first unfinished target come, and a word on the rest; exit 0."""
    live.fetch.hang("http://a.example/part-2")
    before = len(live.fetch.calls)
    job_id = sift("submit", "http://a.example/part-1", "http://a.example/part-2").out.strip()
    live.wait_started(before + 2)
    said = sift("results", job_id)
    assert said.code == 0
    assert [view["idx"] for view in said.views] == [0]
    assert "1 of 2 finished" in said.err
    assert "--follow waits for the rest" in said.err
    timer = threading.Timer(0.2, live.release)
    timer.start()
    said = sift("results", "--follow", job_id)
    timer.join()
    assert said.code == 0
    assert [view["idx"] for view in said.views] == [0, 1]


def test_results_go_to_a_new_file_only(sift, submitted, tmp_path):
    """--out writes the lines there; what a file holds already is not written over."""
    job_id = submitted("http://a.example/out")
    out = tmp_path / "out.jsonl"
    said = sift("results", "--json", "--out", str(out), job_id)
    assert said.code == 0
    assert json.loads(out.read_text())["url"] == "http://a.example/out"
    assert (said.json["written"], said.json["out"]) == (1, str(out))
    said = sift("results", "--out", str(out), job_id)
    assert said.code == 2
    assert "has lines already" in said.err
    assert len(out.read_text().splitlines()) == 1


def test_an_unknown_job_leaves_no_file(sift, tmp_path):
    """A job that is not there leaves nothing behind."""
    out = tmp_path / "out.jsonl"
    assert sift("results", "--out", str(out), "0" * 32).code == 2
    assert not out.exists()


def test_targets_that_were_not_fetched_have_a_line(live, sift):
    """Of a job that was cancelled every target comes, and the exit code is 1."""
    live.fetch.hang("http://a.example/cut-1")
    before = len(live.fetch.calls)
    job_id = sift("submit", "http://a.example/cut-1", "http://a.example/cut-2").out.strip()
    live.wait_started(before + 1)
    assert sift("cancel", job_id).code == 0
    live.release()
    assert sift("watch", job_id).code == 1
    said = sift("results", job_id)
    assert said.code == 1
    assert [(view["idx"], view["code"]) for view in said.views] == [(0, ""), (1, "not_fetched")]


# ---- watch


def test_watch_writes_a_line_for_each_change(live, sift):
    """Without a terminal each step is a line, failed targets are named by place, the last line is the end."""
    live.fetch.hang("http://a.example/watch-hang")
    before = len(live.fetch.calls)
    urls = (bad(live, "http://a.example/watch-bad"), "http://a.example/watch-hang")
    job_id = sift("submit", *urls).out.strip()
    live.wait_started(before + 2)
    timer = threading.Timer(0.2, live.release)
    timer.start()
    said = sift("watch", job_id)
    timer.join()
    lines = said.out.splitlines()
    assert said.code == 1
    assert lines[0].startswith("running: 1 of 2 finished, 1 failed, 1 in flight")
    assert "target 0: failed: page_not_found: the site has no such page" in lines
    assert lines[-1] == "partial: 2 targets: 1 done, 1 failed"
    assert said.err == "1 failed, not retryable: a rerun won't help\n"
    assert "a.example" not in said.out + said.err


def test_watch_json_is_the_job_at_each_change(sift, submitted):
    """Each line is a job's view; the last one has settled."""
    job_id = submitted("http://a.example/watch-json")
    said = sift("watch", "--json", job_id)
    assert said.code == 0
    assert [view["settled"] for view in said.views] == [True]


# ---- cancel, rerun, delete


def test_cancel_can_be_repeated(live, sift, submitted):
    """Of a job that has ended, cancel says so, and is no error."""
    job_id = submitted("http://a.example/cancel")
    said = sift("cancel", job_id)
    assert (said.code, said.err) == (0, "the job had ended already\n")
    assert said.out == "done: 1 target: 1 done\n"
    assert sift("cancel", "--json", job_id).json["already_ended"]


def test_rerun_fetches_what_failed(live, sift, submitted):
    """A new job with all targets, of which only the failed one is fetched; nothing left to fetch is told."""
    url = bad(live, "http://a.example/rerun-bad")
    job_id = submitted("http://a.example/rerun", url)
    live.fetch.answer(url, "there now")
    before = len(live.fetch.calls)
    said = sift("rerun", "--wait", job_id)
    new_id = said.out.strip()
    assert said.code == 0
    assert new_id != job_id
    assert [call.target.url for call in live.fetch.calls[before:]] == [url]
    said = sift("rerun", new_id)
    assert (said.code, said.out.strip()) == (0, new_id)
    assert "nothing left to fetch" in said.err
    assert sift("rerun", "--json", new_id).json["id"] == new_id


def test_a_rerun_that_is_under_way_is_joined(live, sift, submitted):
    """The second rerun gives the id of the first one, and says so."""
    url = bad(live, "http://a.example/twice")
    job_id = submitted(url)
    live.fetch.hang(url)
    live.fetch.answer(url, "there now")
    first = sift("rerun", job_id)
    again = sift("rerun", job_id)
    live.release()
    assert again.out == first.out
    assert "under way already" in again.err


def test_delete_removes_a_settled_job_only(live, sift, submitted):
    """A live job is refused with what to do; a deleted one is gone, and deleting it again is no error."""
    live.fetch.hang("http://a.example/delete-hang")
    job_id = sift("submit", "http://a.example/delete-hang").out.strip()
    said = sift("delete", job_id)
    assert said.code == 2
    assert f"wait for it with `sift-batch watch {job_id}`, or cancel it first" in said.err
    live.release()
    sift("watch", job_id)
    said = sift("delete", job_id)
    assert (said.code, said.out, said.err) == (0, "", "deleted\n")
    said = sift("status", job_id)
    assert said.code == 2
    assert said.err == "sift-batch: the job was deleted; submit its targets again\n"
    assert sift("delete", "--json", job_id).json == {"id": job_id, "deleted": True}


# ---- ids, keys, services


COMMANDS = ("status", "watch", "results", "cancel", "rerun", "delete")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "job_id",
    ["0" * 32, "nope", "", "..", "../x", "a/b", "a?b", "a%2fb", "ü", "x" * 5_000, "-x", "--json", "\x1b[2J"],
)
def test_a_malformed_id_is_an_unknown_one(sift, command, job_id):
    """Whatever is given as an id, the answer is that of an unknown one, and exit 2."""
    said = sift(command, "--", job_id)
    assert (said.code, said.out, said.err) == (2, "", UNKNOWN)


def test_an_error_in_json_has_its_code(sift):
    """With --json an error is one object with the service's code and status."""
    said = sift("status", "--json", "nope")
    assert json.loads(said.err) == {
        "error": "no such job; `sift-batch list` shows your jobs",
        "code": "unknown_job",
        "status": 404,
    }


def test_a_refused_key_is_exit_3(live, capfd, tmp_path):
    """A key that the service does not know is told with what to do."""
    path = tmp_path / "key"
    path.write_text("siftb_" + "A" * 40 + "\n")
    for command in (("list",), ("watch", "x"), ("results", "x"), ("submit", "http://a.example/")):
        said = ran(capfd, command[0], "--server", live.url, "--key-file", str(path), *command[1:])
        assert (said.code, said.out) == (3, "")
        assert said.err == (
            "sift-batch: no valid key; the service does not know the key of --key-file or SIFT_BATCH_KEY; "
            "ask its operator for one\n"
        )


@pytest.mark.parametrize(
    ("content", "code"),
    [(None, 2), (b"", 3), (b"\n", 3), (b"short\n", 3), (b"k" * 40 + b"\nmore", 3), (b"\xff" * 40, 3)],
)
def test_a_key_file_without_a_key_is_told(live, capfd, tmp_path, content, code):
    """No file is exit 2, a file without a key exit 3; nothing of it is shown, and nobody is asked."""
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    said = ran(capfd, "list", "--server", "http://127.0.0.1:1", "--key-file", str(path))
    assert said.code == code
    assert said.err.count("\n") == 1
    assert "key" in said.err
    assert "short" not in said.err


def test_no_service_and_no_key_are_told(capfd):
    """What is missing is named with the flag and the variable that give it."""
    said = ran(capfd, "list")
    assert said.code == 2
    assert "--server" in said.err
    said = ran(capfd, "list", "--server", "http://127.0.0.1:1")
    assert said.code == 3
    assert "--key-file or SIFT_BATCH_KEY" in said.err


@pytest.mark.parametrize("server", ["127.0.0.1:8080", "http://10.0.0.1:8080", "ftp://x", "http://\x1b[2J"])
def test_an_address_that_can_t_be_used_is_exit_2(live, capfd, server):
    """A service that is no URL, or would get the key unprotected, is refused before it is called."""
    said = ran(capfd, "list", "--server", server, "--key-file", str(live.key_file))
    assert said.code == 2
    assert "\x1b" not in said.err


def test_a_service_that_is_not_there_is_exit_3(live, capfd):
    """Nobody at the address: one line with the address and what to look at."""
    for command in (
        ("list",),
        ("watch", "x"),
        ("results", "--follow", "x"),
        ("submit", "--wait", "http://a.example/"),
    ):
        said = ran(
            capfd,
            command[0],
            "--server",
            "http://127.0.0.1:1",
            "--key-file",
            str(live.key_file),
            *command[1:],
        )
        assert (said.code, said.out) == (3, "")
        assert said.err == (
            "sift-batch: http://127.0.0.1:1: nothing answers there; "
            "see that the service runs, and that --server names it\n"
        )


def test_quiet_says_errors_only(live, sift, submitted):
    """With -q standard error is empty unless something is wrong."""
    job_id = submitted("http://a.example/quiet", bad(live, "http://a.example/quiet-bad"))
    for command in ("status", "watch", "results", "cancel"):
        assert sift(command, "-q", job_id).err == ""
    assert sift("delete", "-q", job_id).err == ""
    assert sift("status", "-q", job_id).err != ""
