"""What does somebody read who has a service do something, and it can't, or need not?"""

import json
import re

import click
import pytest
from remote_rig import ran
from test_remote_hostile import JOB, Server, answer

from sift_batch.cli.commands import COMMANDS, cli
from sift_batch.fetch import FetchError

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("in_this_process")]

A, B = "http://a.example/1", "http://b.example/2"


@pytest.mark.parametrize("code", ["page_not_found", "busy"])
def test_a_rerun_is_recommended_only_where_it_may_help(live, sift, code) -> None:
    """Of a job whose failures are for good, `watch`, `submit` and `status` say so; of others the way on."""
    live.fetch.fail(A, FetchError(code, "no"))
    job_id = sift("submit", A, B).out.strip()
    live.settle(job_id)
    vain = code == "page_not_found"
    for args in (("watch", job_id), ("submit", A, B), ("submit", "--wait", A, B), ("status", job_id)):
        said = sift(*args)
        text = said.out + said.err
        assert ("a rerun won't help" in text) == vain, (args, text)
        assert (f"`sift-batch rerun {job_id}` fetches what is missing" in text) != vain, (args, text)


def test_advice_about_a_job_names_it(live, sift) -> None:
    """What `delete` says of a live job can be typed as it stands."""
    live.fetch.hang(A)
    job_id = sift("submit", A).out.strip()
    live.wait_started(1)
    said = sift("delete", job_id)
    assert said.code == 2
    assert f"`sift-batch watch {job_id}`" in said.err
    assert " ID" not in said.err


def test_half_a_key_is_called_that(live, capfd, monkeypatch) -> None:
    """A key that was not copied whole is told as such, by where it came from."""
    monkeypatch.setenv("SIFT_BATCH_KEY", "siftb_x")
    said = ran(capfd, "list", "--server", live.url)
    assert (said.code, said.out) == (3, "")
    assert said.err.startswith("sift-batch: SIFT_BATCH_KEY is not a whole key; ")


@pytest.mark.parametrize("job_id", ["", "x", "0" * 31, "A" * 32, "0" * 32 + "\n", "../../v1/batch"])
@pytest.mark.parametrize(
    "args", [("submit", A), ("submit", "--json", A), ("submit", "--wait", A), ("rerun", "x")]
)
def test_what_is_no_id_is_not_printed(capfd, tmp_path, job_id, args) -> None:
    """A script gets from `submit` and `rerun` an id as services make them, or exit 3 and nothing."""
    key_file = tmp_path / "key"
    key_file.write_text("siftb_" + "k" * 40)
    view = answer(json.dumps({**JOB, "id": job_id}).encode())
    with Server(lambda _: view) as server:
        said = ran(capfd, args[0], "--server", server.url, "--key-file", str(key_file), *args[1:])
    assert (said.code, said.out, said.err.count("\n")) == (3, "", 1)
    assert "the service's answer is not understood" in said.err


def _all_commands():
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        yield name, command
        if isinstance(command, click.Group):
            for sub in command.commands:
                yield f"{name} {sub}", command.commands[sub]


@pytest.mark.parametrize(("name", "command"), list(_all_commands()))
def test_every_help_has_examples(name, command) -> None:
    """The help of each command and group shows it in use, by its own name."""
    examples = re.search(r"Examples?:\n((?:  .*\n)+)", command.help)
    assert examples is not None
    assert f"sift-batch {name}" in examples[1]
