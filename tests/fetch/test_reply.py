"""What a status stands for, and what a Retry-After asks for."""

import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift_batch.fetch._errors import FetchError
from sift_batch.fetch._reply import judge, retry_after

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (b"7", 7),
        (b" 7\t", 7),
        (b"007", 7),
        (b"0", 1),
        (b"600", 600),
        (b"601", 600),
        (b"86400", 600),
        (b"9999999999", 600),
        (b"1" + b"0" * 30, 600),
        (b"9" * 5_000, 600),
        (b"0" * 5_000 + b"9", 9),
        (b"Tue, 14 Nov 2023 22:13:50 GMT", 30),
        (b"Tue, 14 Nov 2023 22:13:50", 30),
        (b"14 Nov 2023 22:13:50 GMT", 30),
        (b"Tuesday, 14-Nov-23 22:13:50 GMT", 30),
        (b"Tue Nov 14 22:13:50 2023", 30),
        (b"Tue, 14 Nov 2023 23:13:50 +0100", 30),
        (b"Wed, 21 Oct 2015 07:28:00 GMT", 1),
        (b"Fri, 31 Dec 9999 23:59:59 GMT", 600),
    ],
)
def test_seconds_and_dates_are_understood_and_clamped(value, seconds):
    """A number or a date gives between one second and the limit."""
    assert retry_after(value, NOW, 600.0) == seconds


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"-1",
        b"-0",
        b"+5",
        b"1.5",
        b"1e3",
        b"0x10",
        b"1_0",
        b"5 6",
        b"5s",
        b"5;x",
        b"120, 60",
        b"5, 5",
        b"soon",
        b"\xb2",
        "\u0667".encode(),
        "\uff17".encode(),
        b"7\x00",
        b"Tue, 31 Feb 2023 22:13:50 GMT",
        b"Tue, 14 Nov 2023 25:13:50 GMT",
        b"Tue, 14 Nov 2023",
        b"2023-11-14T22:13:50Z",
        b"Tue, 14 Nov 2023 22:13:50 GMT, Tue, 14 Nov 2023 22:13:50 GMT",
        b"Tue, 14 Nov 2023 22:13:50 GMT, 5",
        b"Fri, 31 Dec 99999 23:59:59 GMT",
        b"nan",
        b"inf",
    ],
)
def test_anything_else_is_ignored(value):
    """What is neither one number nor one date asks for nothing."""
    assert retry_after(value, NOW, 600.0) is None


@given(st.binary(max_size=60) | st.integers().map(lambda n: str(n).encode()), st.floats(1, 1e9))
def test_any_value_is_a_bounded_time_or_none(value, limit):
    """No header value raises, or asks for less than a second or for more than the limit."""
    seconds = retry_after(value, NOW, limit)
    assert seconds is None or 1 <= seconds <= limit


@given(st.integers(1, 600))
def test_a_date_means_the_same_as_its_distance(seconds):
    """A date that is some seconds ahead is the same wait as the number of them."""
    date = formatdate(NOW + seconds, usegmt=True).encode()
    assert retry_after(date, NOW, 600.0) == retry_after(str(seconds).encode(), NOW, 600.0)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (300, "http_error"),
        (304, "http_error"),
        (400, "http_error"),
        (401, "auth_required"),
        (402, "http_error"),
        (403, "blocked"),
        (404, "page_not_found"),
        (407, "auth_required"),
        (408, "http_error"),
        (410, "page_gone"),
        (418, "http_error"),
        (429, "busy"),
        (451, "page_gone"),
        (500, "server_error"),
        (503, "server_error"),
        (599, "server_error"),
    ],
)
def test_a_status_stands_for_a_code(status, code):
    """Each status that comes without a page has its code, and its text names the status."""
    with pytest.raises(FetchError) as caught:
        judge(status)
    assert caught.value.code == code
    assert str(status) in caught.value.message


def test_only_2xx_is_a_page():
    """A status from 200 to 299 passes and no other does; that is the end, and nothing to try once more."""
    for status in range(200, 300):
        judge(status)
    for status in range(300, 600):
        with pytest.raises(FetchError) as caught:
            judge(status)
        assert not caught.value.transient


def test_a_date_without_a_zone_is_in_gmt_everywhere(monkeypatch):
    """The zone that the machine is set to makes no difference."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert retry_after(b"Tue, 14 Nov 2023 22:13:50", NOW, 600.0) == 30
        assert retry_after(b"Tue Nov 14 22:13:50 2023", NOW, 600.0) == 30
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "code", ["blocked", "auth_required", "dns", "connect", "protocol", "redirect_loop", "server_error"]
)
def test_a_failure_comes_with_advice(code):
    """A failure that names nothing better has the advice for its code; one of its own stays."""
    advice = FetchError(code, "it failed").hint
    assert advice
    assert "recover" not in advice  # not everybody may look into an archive, and it may have been tried
    assert FetchError(code, "it failed", hint="do this").hint == "do this"


@pytest.mark.parametrize("status", [401, 403, 407, 500, 599])
def test_a_status_that_is_no_page_comes_with_advice(status):
    """What a site refuses, or can't give, has a hint that says what may help."""
    with pytest.raises(FetchError) as caught:
        judge(status)
    assert caught.value.hint
