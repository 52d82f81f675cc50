"""What does somebody see who cancels a job and runs it again at once, or whose key is taken out?"""

import re
import threading

import pytest

import sift_batch.cli.rerun_command as rerun_command

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("in_this_process")]


@pytest.fixture
def cancelled(live, sift):
    """Cancel a job with a fetch in flight; give its id and what was said."""

    def cancelled():
        live.fetch.hang("http://a.example/1")
        job_id = sift("submit", "http://a.example/1", "http://a.example/2").out.strip()
        live.wait_started(1)
        return job_id, sift("cancel", job_id)

    return cancelled


@pytest.mark.parametrize("flags", [(), ("--wait",)])
def test_a_rerun_right_after_a_cancel(live, sift, cancelled, flags) -> None:
    """It waits for the fetch in flight, says so, and begins; the cancel has said what is in flight."""
    job_id, said = cancelled()
    assert said.out == "cancelled: 2 targets: 0 done, 1 in flight is being finished, 1 not fetched\n"
    timer = threading.Timer(0.3, live.release)
    timer.start()
    said = sift("rerun", job_id, *flags)
    timer.join()
    assert said.code == 0
    assert re.fullmatch(r"[0-9a-f]{32}\n", said.out)
    note = "the job is cancelled; waiting for the fetch of it that is in flight"
    assert said.err.splitlines()[0] == note
    live.settle(said.out.strip())
    assert sift("watch", said.out.strip()).code == 0


def test_a_rerun_does_not_wait_for_ever(sift, cancelled, monkeypatch) -> None:
    """A fetch that takes too long is told as what it is: nothing that a cancel could help."""
    monkeypatch.setattr(rerun_command, "_SETTLE_SECONDS", 0.0)
    job_id, _ = cancelled()
    for command in ("rerun", "delete"):
        said = sift(command, "-q", job_id)
        assert (said.code, said.out) == (2, "")
        assert said.err == (
            "sift-batch: the job has ended, and one fetch of it is still in flight; "
            "wait until that is finished; try again in 5 s\n"
        )


def test_a_rerun_of_a_live_job_is_refused_at_once(live, sift) -> None:
    """A job that goes on is not waited for: it can be cancelled, and the error says so."""
    live.fetch.hang("http://a.example/1")
    job_id = sift("submit", "http://a.example/1").out.strip()
    said = sift("rerun", job_id)
    assert said.code == 2
    assert "or cancel it first" in said.err
    assert "waiting" not in said.err


def test_a_key_that_is_taken_out(live, sift) -> None:
    """Who watches a job while the key is taken out reads that the service knows it no more."""
    live.fetch.hang("http://a.example/1")
    job_id = sift("submit", "http://a.example/1").out.strip()
    key = live.key_file.read_text()
    other = live.folder.parent / "key-of-the-caller"
    other.write_text(key)
    live.wait_started(1)

    def take_out() -> None:
        live.wait_open(1)
        live.stop()
        live.key_file.unlink()
        live.start()

    thread = threading.Thread(target=take_out)
    thread.start()
    said = sift("watch", "--key-file", str(other), job_id)
    thread.join()
    assert said.code == 3
    assert said.err.endswith(
        "sift-batch: the service knows this key no more; ask its operator for another one\n"
    )
    assert "give a key" not in said.err
