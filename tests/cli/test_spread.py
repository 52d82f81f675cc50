"""Which target goes into which job."""

from hypothesis import given
from hypothesis import strategies as st

from sift_batch.cli.spread import TARGETS_PER_JOB, deal, windows

hosts = st.lists(st.sampled_from("abcdefghij"), max_size=256)


@given(hosts, st.integers(1, 8))
def test_every_target_is_in_one_job(given_hosts, parallel):
    """Each index is dealt once, to at most `parallel` jobs that differ by one target at most."""
    jobs = deal(given_hosts, parallel)
    assert sorted(index for job in jobs for index in job) == list(range(len(given_hosts)))
    sizes = {len(job) for job in jobs}
    assert not sizes or max(sizes) - min(sizes) <= 1
    assert len(jobs) <= parallel


@given(st.integers(2, 8), st.integers(2, 12))
def test_the_targets_of_one_job_go_to_different_hosts(parallel, n_hosts):
    """Grouped input of many hosts gives jobs that alternate hosts, and neighbours on different ones."""
    grouped = [str(host) for host in range(n_hosts) for _ in range(240 // n_hosts)]
    jobs = deal(grouped, parallel)
    for job in jobs:
        in_a_row = [grouped[index] for index in job]
        assert len(set(in_a_row)) == min(n_hosts, len(job))
        assert len(set(in_a_row[: n_hosts + 1])) > 1
    first = [grouped[job[0]] for job in jobs]
    assert len(set(first)) == min(parallel, n_hosts)


@given(hosts, st.integers(1, 8))
def test_each_hosts_targets_keep_their_order_in_a_job(given_hosts, parallel):
    """Two targets of one host in one job come in input order."""
    for job in deal(given_hosts, parallel):
        for host in set(given_hosts):
            own = [index for index in job if given_hosts[index] == host]
            assert own == sorted(own)


@given(st.integers(0, 2_000), st.integers(1, 8))
def test_windows_cover_the_input_in_order(total, parallel):
    """Windows are runs of the input that fill at most `parallel` jobs, none of them empty."""
    cut = list(windows(range(total), parallel))
    assert [item for window in cut for item in window] == list(range(total))
    assert all(0 < len(window) <= parallel * TARGETS_PER_JOB for window in cut)
