"""Which servers the guard lets through: URLs, redirects, names, look-ups and their answers."""

import errno
import socket
import threading
from ipaddress import ip_address

import pytest
import trio
import trio.testing
from guard_cases import ANSWERS, REDIRECTS, URLS
from hypothesis import given
from hypothesis import strategies as st

from sift_batch import host_key
from sift_batch.fetch import _guard
from sift_batch.fetch._config import FetchConfig
from sift_batch.fetch._errors import FetchError
from sift_batch.fetch._guard import Guard

DEFAULT = Guard(FetchConfig())
REFUSED = ("refused", 403, False)


def resolver(*answers: str, asked: list[str] | None = None):
    """Give a look-up that answers the same for each name."""

    async def resolve(host: str) -> tuple[str, ...]:
        await trio.lowlevel.checkpoint()
        if asked is not None:
            asked.append(host)
        return answers

    return resolve


def failing(error: BaseException):
    """Give a look-up that fails."""

    async def resolve(_host: str) -> tuple[str, ...]:
        await trio.lowlevel.checkpoint()
        raise error

    return resolve


async def addresses(url: str, **settings) -> tuple[str, ...]:
    """Ask a guard of these settings for the addresses of a URL."""
    guard = Guard(FetchConfig(**settings))
    return await guard.addresses(guard.parse(url))


def refusal(call, *arguments) -> str:
    """Return the reason for which a call is refused, "" if it is not."""
    try:
        call(*arguments)
    except FetchError as error:
        return error.reason if (error.code, error.status, error.retryable) == REFUSED else error.code
    return ""


@pytest.mark.parametrize(("url", "reason", "why"), URLS)
def test_urls(url, reason, why):
    """A URL is let through, or refused for exactly this reason."""
    assert refusal(DEFAULT.parse, url) == reason, why


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.01/", "numeric_host"),
        ("http://foo.0x4/", "numeric_host"),
        ("http://foo.0x/", "numeric_host"),
        ("http://xn--a/", "host_syntax"),
        ("http://xn--a.org/", "host_syntax"),
        ("http://public.org:080/", "port"),
        ("http://public.org:/", "port"),
        ("http://[2606:4700::1]:/", "port"),
        ("http://public.org:8_0/", "port"),
        ("http://[fe80::1%25eth0]/", "zone_id"),
        ("http://[fe80::1%eth0]/", "zone_id"),
        ("http://[::ffff:8.8.8.8]/", "special_address"),
        ("http://[1.2.3.4]/", "malformed"),
        ("http://[]/", "malformed"),
        ("http://::1/", "malformed"),
        ("http://public.org:80:80/", "malformed"),
        ("http://:80/", "malformed"),
        ("http:///h", "malformed"),
        ("file:///etc/passwd", "scheme"),
        ("file:/etc/passwd", "scheme"),
        ("gopher://public.org/", "scheme"),
        ("ftp://public.org/", "scheme"),
        ("javascript:alert(1)", "scheme"),
        ("http://public.org/\t", "bad_character"),
        ("http://public.org/\r\nX:1", "bad_character"),
        ("http://public.org/\u202ex", "bad_character"),
        ("http://public.org/x#\u200b", "bad_character"),
        ("http://public.org/\ud800", "bad_character"),
        ("http://public.org/a|b", "bad_character"),
        ("http://public.org:22/", "port"),
        ("https://home.arpa/", "special_name"),
        ("https://router.home.arpa/", "special_name"),
        ("https://1.0.0.127.in-addr.arpa/", "special_name"),
        ("https://x.onion/", "special_name"),
        ("https://a.example/", "special_name"),
        ("https://localhost.localhost/", "special_name"),
        ("https://uri.arpa/", ""),
        ("https://example.com/", ""),
        ("https://local.org/", ""),
        ("https://xn--bcher-kva.de/", ""),
        ("https://r2---sn-x.org/", ""),
        ("https://1.1.1.1:443/", ""),
        ("https://[2606:4700::1111]/", ""),
    ],
)
def test_more_urls(url, reason):
    """A URL is let through, or refused for exactly this reason."""
    assert refusal(DEFAULT.parse, url) == reason


@pytest.mark.parametrize(("answers", "reason", "why"), ANSWERS)
async def test_answers(answers, reason, why):
    """All answers of a look-up are checked, and one bad answer refuses the name."""
    if not reason:
        assert set(await addresses("http://public.org/", resolve=resolver(*answers))) == set(answers)
        return
    with pytest.raises(FetchError) as caught:
        await addresses("http://public.org/", resolve=resolver(*answers))
    assert (caught.value.code, caught.value.reason) == ("refused", reason), why


@pytest.mark.parametrize(("base", "location", "reason", "why"), REDIRECTS)
def test_redirects(base, location, reason, why):
    """A Location is checked as a new target is, and never leads from https down to http."""
    assert refusal(DEFAULT.join, DEFAULT.parse(base), location.encode()) == reason, why


async def test_a_redirect_that_resolves_inward_is_refused():
    """The name in a Location is looked up and checked as the first one was."""

    async def resolve(host: str) -> list[str]:
        await trio.lowlevel.checkpoint()
        return ["93.184.216.34"] if host == "public.org" else ["10.0.0.1"]

    guard = Guard(FetchConfig(resolve=resolve))
    first = guard.parse("http://public.org/")
    assert await guard.addresses(first) == ("93.184.216.34",)
    second = guard.join(first, b"http://rebind.public.org/")
    with pytest.raises(FetchError) as caught:
        await guard.addresses(second)
    assert caught.value.reason == "special_address"


@pytest.mark.parametrize(
    ("location", "url"),
    [
        (b"other?x", "https://public.org/dir/other?x"),
        (b"/b", "https://public.org/b"),
        (b"?y", "https://public.org/dir/page?y"),
        (b"", "https://public.org/dir/page?q=1"),
        (b"#top", "https://public.org/dir/page?q=1"),
        (b"../up", "https://public.org/up"),
        (b"//b.org", "https://b.org/"),
        (b"HTTPS://C.org:443/", "https://c.org/"),
        ("/grün?ü".encode(), "https://public.org/gr%C3%BCn?%C3%BC"),
        (b" /b ", "https://public.org/b"),
        (b"/two words", "https://public.org/two%20words"),
        (b"/..//evil.org/", "https://public.org//evil.org/"),
    ],
)
def test_locations_are_seen_from_the_page(location, url):
    """A Location leads where a browser would go; UTF-8 in it is percent-encoded."""
    base = DEFAULT.parse("https://public.org/dir/page?q=1")
    assert DEFAULT.join(base, location).url == url


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        (b"/caf\xe9", "malformed"),
        (b"http:page", "malformed"),
        (b"http:///", "malformed"),
        (b"file:///etc/passwd", "scheme"),
        (b"javascript:alert(1)", "scheme"),
        (b"data:,x", "scheme"),
        (b"/\\evil.org", "bad_character"),
        (b"\\\\evil.org", "bad_character"),
        (b"/x\r\nSet-Cookie: a", "bad_character"),
        (b"https://two words.org/", "percent_in_host"),
        (b"https://2130706433/", "numeric_host"),
        (b"https://localhost/", "special_name"),
    ],
)
def test_bad_locations(location, reason):
    """A Location that a browser would repair, or that leads elsewhere than to a site, is refused."""
    base = DEFAULT.parse("https://public.org/dir/page")
    assert refusal(DEFAULT.join, base, location) == reason


@given(st.binary(max_size=60))
def test_any_location_is_an_address_or_refused(location):
    """No Location raises anything but `FetchError`."""
    base = DEFAULT.parse("http://public.org/dir/page")
    try:
        assert DEFAULT.join(base, location).url.isascii()
    except FetchError as error:
        assert error.code == "refused"  # noqa: PT017  # both ends are fine


@pytest.mark.parametrize(
    ("url", "settings", "option"),
    [
        ("http://10.0.0.1/", {}, "`allow`"),
        ("http://8.8.8.8/", {"deny": ["8.8.8.0/24"]}, "`deny`"),
        ("http://[64:ff9b::808:808]/", {}, "`nat64`"),
        ("http://public.org:8080/", {}, "`ports`"),
        ("http://wiki.corp/", {}, "`allow_names`"),
        ("http://localhost/", {}, "`allow`"),
    ],
)
def test_hints_name_the_option(url, settings, option):
    """Where an operator could lift a refusal, the hint names the option; no text shows the target."""
    with pytest.raises(FetchError) as caught:
        Guard(FetchConfig(**settings)).parse(url)
    error = caught.value
    assert option in error.hint
    for part in ("10.0", "8.8", "64:ff9b", "8080", "public.org", "wiki", "corp"):
        assert part not in error.message + error.hint


@pytest.mark.parametrize("allow", [["127.0.0.0/8"], ["::1/128"], ["10.0.0.0/8"]])
def test_localhost_needs_both_of_its_addresses(allow):
    """Where one of the two is not allowed, the hint says that localhost stands for both."""
    with pytest.raises(FetchError) as caught:
        Guard(FetchConfig(allow=allow)).parse("http://localhost/")
    assert caught.value.reason == "special_address"
    assert "the IPv4 and the IPv6 address" in caught.value.hint
    Guard(FetchConfig(allow=["127.0.0.0/8", "::1/128"])).parse("http://localhost/")
    with pytest.raises(FetchError, match="public") as caught:
        Guard(FetchConfig(allow=["127.0.0.0/8", "::1/128"], deny=["::1/128"])).parse("http://localhost/")
    assert "`deny`" in caught.value.hint


@pytest.mark.parametrize("ports", ["any", ["80"], [True], [0], [70_000]])
def test_bad_ports_say_what_is_taken(ports):
    """Whatever is wrong with `ports`, the error says whole numbers, and None for any."""
    with pytest.raises((TypeError, ValueError), match=r"whole numbers .* None for any"):
        FetchConfig(ports=ports)


def test_no_text_shows_the_target():
    """Each reason has a text of its own that holds nothing of the URL."""
    texts: dict[str, set[str]] = {}
    for url, reason, _ in URLS:
        if reason:
            with pytest.raises(FetchError) as caught:
                DEFAULT.parse(url)
            texts.setdefault(reason, set()).add(caught.value.message)
            for word in ("public.org", "evil", "127", "org/", "169.254", "metadata"):
                assert word not in caught.value.message + caught.value.hint
    assert len(texts) >= 12
    for reason, messages in texts.items():
        assert not any(messages & other for name, other in texts.items() if name != reason)


@pytest.mark.parametrize("ports", [frozenset({8080}), None])
def test_ports(ports):
    """Only the ports of the setting may be called, any with None."""
    guard = Guard(FetchConfig(ports=ports))
    assert guard.parse("http://public.org:8080/").port == 8080
    assert refusal(guard.parse, "http://public.org/") == ("" if ports is None else "port")


@pytest.mark.parametrize(
    ("url", "settings", "reason"),
    [
        ("http://wiki.corp/", {"allow_names": ["wiki.corp"]}, ""),
        ("http://WIKI.corp./", {"allow_names": ["Wiki.Corp"]}, ""),
        ("http://a.wiki.corp/", {"allow_names": ["wiki.corp"]}, "special_name"),
        ("http://a.b.corp/", {"allow_names": [".corp"]}, ""),
        ("http://acorp/", {"allow_names": [".corp"]}, "special_name"),
        ("http://corp/", {"allow_names": [".corp"]}, "special_name"),
        ("http://intranet/", {"allow_names": ["intranet"]}, ""),
        ("http://intranet/", {"allow": ["10.0.0.0/8"]}, ""),
        ("http://wiki.corp/", {"allow": ["10.0.0.0/8"]}, "special_name"),
        ("http://printer.local/", {"allow": ["0.0.0.0/0", "::/0"]}, "special_name"),
        ("http://localhost/", {"allow": ["127.0.0.0/8", "::1/128"]}, ""),
        ("http://a.b.localhost/", {"allow": ["127.0.0.1/32", "::/0"]}, ""),
        ("http://localhost/", {"allow": ["127.0.0.0/8"]}, "special_address"),
        ("http://localhost/", {"allow": ["10.0.0.0/8"]}, "special_address"),
        ("http://localhost/", {"allow_names": ["localhost"]}, "special_address"),
        ("http://localhost/", {"allow": ["127.0.0.0/8", "::1/128"], "deny": ["::1"]}, "special_address"),
        ("http://127.0.0.1/", {"allow_names": ["127.0.0.1"]}, "special_address"),
        ("http://[::ffff:10.0.0.1]/", {"allow": ["10.0.0.0/8"]}, ""),
    ],
)
def test_names(url, settings, reason):
    """`allow_names` lifts the rule on names alone; `allow` admits localhost and single labels besides."""
    assert refusal(Guard(FetchConfig(**settings)).parse, url) == reason


async def test_an_admitted_name_needs_allowed_addresses():
    """A special name that is admitted may still not lead to an address that is not allowed."""
    settings = {"allow_names": ["wiki.corp"], "resolve": resolver("10.0.0.1")}
    with pytest.raises(FetchError) as caught:
        await addresses("http://wiki.corp/", **settings)
    assert caught.value.reason == "special_address"
    assert await addresses("http://wiki.corp/", allow=["10.0.0.0/8"], **settings) == ("10.0.0.1",)


async def test_a_single_label_needs_allowed_addresses():
    """A single label under `allow` may not lead to an address that is not allowed."""
    with pytest.raises(FetchError) as caught:
        await addresses("http://intranet/", allow=["10.0.0.0/8"], resolve=resolver("10.0.0.1", "192.168.0.1"))
    assert caught.value.reason == "special_address"


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "127.0.0.1", "[::1]"])
async def test_no_look_up_for_localhost_and_literals(host):
    """Nobody is asked for localhost, which is this machine, or for an address, which is itself."""
    asked: list[str] = []
    settings = {"allow": ["127.0.0.0/8", "::1/128"], "resolve": resolver("8.8.8.8", asked=asked)}
    expected = {"127.0.0.1": ("127.0.0.1",), "[::1]": ("::1",)}.get(host, ("127.0.0.1", "::1"))
    assert await addresses(f"http://{host}/", **settings) == expected
    assert asked == []


async def test_a_mapped_literal_is_the_ipv4_server():
    """An allowed address in its mapped spelling is called, and counted by the gate, as the IPv4 address."""
    guard = Guard(FetchConfig(allow=["10.0.0.0/8"], resolve=resolver("::ffff:10.0.0.2")))
    url = "http://[::ffff:10.0.0.1]/x"
    address = guard.parse(url)
    assert address.url == "http://10.0.0.1/x"
    assert host_key(url) == host_key(address.url) == address.host
    assert await guard.addresses(address) == ("10.0.0.1",)
    assert await guard.addresses(guard.parse("http://public.org/")) == ("10.0.0.2",)


async def test_the_resolver_gets_the_ascii_name_once():
    """A look-up is one question for the name as it is called, in ASCII and without the last dot."""
    asked: list[str] = []
    await addresses("http://BÜCHER.de./", resolve=resolver("8.8.8.8", asked=asked))
    assert asked == ["xn--bcher-kva.de"]


async def test_both_families_are_tried():
    """Of many answers four are tried, and no family takes all places."""
    six = [f"2606:4700::{n}" for n in range(1, 9)]
    found = await addresses("http://public.org/", resolve=resolver(*six, "8.8.8.8", "8.8.8.8"))
    assert found == (six[0], "8.8.8.8", six[1], six[2])
    assert await addresses("http://public.org/", resolve=resolver("8.8.8.8", *six)) == (
        "8.8.8.8",
        *six[:3],
    )


@pytest.mark.parametrize(
    "answers", [["8.8.8.8", "eight"], ["8.8.8.8", 8], ["8.8.8.8", "8.8.8.8."], "8.8.8.8"]
)
async def test_answers_that_are_no_addresses(answers):
    """What is no address refuses the name, and is not handed on to be looked up again."""
    with pytest.raises(FetchError) as caught:
        await addresses("http://public.org/", resolve=resolver(*answers))
    assert (caught.value.code, caught.value.reason) == ("refused", "no_address")


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (socket.gaierror(socket.EAI_NONAME, "x"), False),
        (socket.gaierror(socket.EAI_NODATA, "x"), False),
        (socket.gaierror(socket.EAI_FAIL, "x"), False),
        (socket.gaierror(socket.EAI_AGAIN, "x"), True),
        (trio.TooSlowError(), True),
        (TimeoutError(), True),
        (OSError("x"), True),
        (KeyError("public.org"), False),
        (ExceptionGroup("x", [ValueError("public.org")]), False),
    ],
)
async def test_look_ups_that_fail(error, transient):
    """A failed look-up is `dns`, told apart by whether the same question could have an answer soon."""
    with pytest.raises(FetchError) as caught:
        await addresses("http://public.org/", resolve=failing(error))
    assert (caught.value.code, caught.value.transient) == ("dns", transient)
    assert caught.value.retryable
    assert caught.value.__cause__ is None
    assert "public" not in caught.value.message


async def test_a_refusal_of_the_resolver_is_kept():
    """A resolver of the application's own may refuse a name itself."""
    with pytest.raises(FetchError) as caught:
        await addresses("http://public.org/", resolve=failing(FetchError("blocked", "x")))
    assert caught.value.code == "blocked"


async def test_a_look_up_has_five_seconds(autojump_clock):
    """A look-up that hangs ends after five seconds, as one that may work later."""

    async def resolve(_host: str) -> list[str]:
        await trio.sleep_forever()
        raise AssertionError

    began = trio.current_time()
    with pytest.raises(FetchError) as caught:
        await addresses("http://public.org/", resolve=resolve)
    assert trio.current_time() - began == 5
    assert (caught.value.code, caught.value.transient) == ("dns", True)


async def test_look_ups_that_hang_do_not_fail_other_names(monkeypatch, mock_clock):
    """While every thread hangs, another name waits for one, and has its five seconds only then."""
    monkeypatch.setattr(_guard, "_LOOKUPS", 2)
    release = threading.Event()
    hanging, failed = [], []
    token = trio.lowlevel.current_trio_token()

    def getaddrinfo(host, *_, **__):
        if b"hangs" in host:
            token.run_sync_soon(hanging.append, host)
            release.wait(30)
            return []
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", 0))]

    monkeypatch.setattr(_guard.socket, "getaddrinfo", getaddrinfo)
    guard = Guard(FetchConfig())

    async def hangs(name):
        with pytest.raises(FetchError, match="too long"):
            await guard.addresses(guard.parse(f"http://{name}.hangs.org/"))
        failed.append(name)

    async def until_two(found):
        while len(found) < 2:
            await trio.lowlevel.checkpoint()

    try:
        async with trio.open_nursery() as nursery:
            for name in "ab":
                nursery.start_soon(hangs, name)
            await until_two(hanging)
            mock_clock.jump(5)
            await until_two(failed)
            whole = trio.CancelScope(deadline=trio.current_time() + 60)

            async def waits():
                with whole:
                    await guard.addresses(guard.parse("http://public.org/"))

            nursery.start_soon(waits)
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(59)
            await trio.testing.wait_all_tasks_blocked()
            assert not whole.cancel_called
            mock_clock.jump(1)
        assert whole.cancelled_caught  # the end of the whole fetch, and no `dns` of that name
    finally:
        release.set()
    assert await guard.addresses(guard.parse("http://public.org/")) == ("8.8.8.8",)


@pytest.mark.parametrize(
    "error",
    [OSError(errno.EMFILE, "x"), socket.gaierror(socket.EAI_MEMORY, "x")],
    ids=["descriptors", "memory"],
)
async def test_a_machine_with_nothing_left_to_ask_with_is_no_failure_of_the_name(monkeypatch, error):
    """No descriptor or memory for a look-up is `internal`, and the archive is not asked for the page."""

    def getaddrinfo(*_, **__):
        raise error

    monkeypatch.setattr(_guard.socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(FetchError) as caught:
        await addresses("http://public.org/")
    assert (caught.value.code, caught.value.retryable) == ("internal", True)


async def test_no_thread_to_look_up_in_is_no_failure_of_the_name(monkeypatch):
    """A machine that starts no more threads is `internal`, and no place is lost by it."""
    guard = Guard(FetchConfig())

    def start(*_given, **_more):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr("trio._threads.start_thread_soon", start)
        with pytest.raises(FetchError) as caught:
            await guard.addresses(guard.parse("http://public.org/"))
    assert caught.value.code == "internal"
    assert guard._threads.borrowed_tokens == 0


async def test_the_name_is_looked_up_as_absolute(monkeypatch):
    """The system is asked once, with a dot at the end, so that no search domain counts."""
    asked = []

    def getaddrinfo(host, port, **kinds):
        asked.append((host, port, kinds["type"]))
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", 0))]

    monkeypatch.setattr(_guard.socket, "getaddrinfo", getaddrinfo)
    assert await addresses("http://vault.public.org/") == ("8.8.8.8",)
    assert asked == [(b"vault.public.org.", None, socket.SOCK_STREAM)]


@pytest.mark.parametrize("sockaddr", [("fe80::1%eth0", 0, 0, 2), ("2606:4700::1", 0, 0, 2)])
async def test_a_scope_in_the_systems_answer_is_refused(monkeypatch, sockaddr):
    """An answer that names a network interface is refused, whether its text shows it or not."""
    answer = [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", sockaddr)]
    monkeypatch.setattr(_guard.socket, "getaddrinfo", lambda *_, **__: answer)
    with pytest.raises(FetchError) as caught:
        await addresses("http://public.org/")
    assert caught.value.reason == "zone_id"


@pytest.mark.parametrize(
    ("number", "transient"), [(socket.EAI_NONAME, False), (socket.EAI_AGAIN, True)], ids=["never", "later"]
)
async def test_the_systems_failures(monkeypatch, number, transient):
    """A name that does not exist is told from a look-up that failed for the time being."""

    def getaddrinfo(*_, **__):
        raise socket.gaierror(number, "public.org")

    monkeypatch.setattr(_guard.socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(FetchError) as caught:
        await addresses("http://public.org/")
    assert (caught.value.code, caught.value.transient) == ("dns", transient)


async def test_hanging_look_ups_leave_other_threads_alone(monkeypatch):
    """A look-up runs in a place of the guard's own, which stays taken until its thread ends."""
    release = threading.Event()
    started = trio.Event()
    token = trio.lowlevel.current_trio_token()

    def getaddrinfo(*_, **__):
        token.run_sync_soon(started.set)
        release.wait(5)
        return []

    monkeypatch.setattr(_guard.socket, "getaddrinfo", getaddrinfo)
    guard = Guard(FetchConfig())
    shared = trio.to_thread.current_default_thread_limiter()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(guard.addresses, guard.parse("http://public.org/"))
            await started.wait()
            assert shared.borrowed_tokens == 0
            nursery.cancel_scope.cancel()
        assert guard._threads.borrowed_tokens == 1
    finally:
        release.set()
    with trio.fail_after(5):
        while guard._threads.borrowed_tokens:  # noqa: ASYNC110  # the end of a thread sets no event
            await trio.sleep(0.001)


@given(
    st.from_regex(
        r"(http://|https://)?[a-zA-Z0-9_.:\[\]\u00e0-\u00ff\u3002\uff0e\uff10-\uff19-]{1,30}", fullmatch=True
    )
)
def test_the_gate_counts_the_host_that_is_called(text):
    """Whatever is let through, the gate's key of the raw URL is the host that is called."""
    guard = Guard(FetchConfig(ports=None, allow=["0.0.0.0/0", "::/0"], allow_names=[".test"]))
    url = text if text.startswith("http") else f"http://{text}/"
    try:
        address = guard.parse(url)
    except FetchError:
        return
    assert host_key(url) == host_key(address.url) == address.host
    if address.host[-1].isdigit() or ":" in address.host:
        try:
            assert str(ip_address(address.host)) == address.host
        except ValueError:
            assert not address.host.rpartition(".")[2].isdigit()
