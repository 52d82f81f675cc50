"""Which servers may be called, and at which addresses?

`Guard` turns a URL into an `Address` that may be called as far as its spelling tells, and an `Address`
into numeric addresses that may be connected to. What a name resolves to is looked up once for each
connection, all answers are checked, and only what was checked is connected to: no second look-up can
say something else. Rules about the spelling are in `_address`, networks in `_special`; it connects to
nothing. Next: `_backend`, which does.
"""

import socket
from collections.abc import Iterable, Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import islice
from typing import Final

import trio

from ._address import Address, parse, resolve
from ._causes import is_spent, spent
from ._config import FetchConfig, networks
from ._errors import FetchError, refused
from ._special import Networks, is_nat64

LOOKUP_SECONDS: Final = 5.0
"""A look-up that takes longer has failed. The wait for a thread to do it in does not count."""
ANSWERS: Final = 64
"""A name with more addresses than this is refused."""
TRIES: Final = 4
"""At most so many addresses of one name are tried."""

_LOOKUPS: Final = 64
_LOCALHOST: Final = ("127.0.0.1", "::1")
_SPECIAL_ENDS: Final = frozenset(
    {"localhost", "local", "internal", "intranet", "lan", "home", "corp", "private"}
    | {"onion", "i2p", "invalid", "test", "example", "alt"}
)
_SPECIAL_ZONES: Final = frozenset({"home.arpa", "in-addr.arpa", "ip6.arpa"})
_FOR_THE_TIME_BEING: Final = frozenset({socket.EAI_AGAIN, socket.EAI_SYSTEM})
PORT_HINT: Final = "an operator can add the port to `ports`"
"""What lifts the refusal of a port."""
NAME_HINT: Final = "an operator can list the name in `allow_names`, and the server's network in `allow`"
"""What lifts the refusal of a name for private use."""
NETWORK_HINT: Final = "an operator can list the server's network in `allow`"
"""What lifts the refusal of an address."""
LOCALHOST_HINT: Final = (
    "localhost stands for the IPv4 and the IPv6 address of this machine; an operator can list both in `allow`"
)
"""What lifts the refusal of localhost, which is easily allowed by half."""


class Guard:
    """Decides what may be called, by one `FetchConfig`. Shared by all fetches; holds no state of theirs."""

    def __init__(self, config: FetchConfig) -> None:
        self._ports = config.ports
        self._resolve = config.resolve
        self._networks = Networks(
            networks("allow", config.allow),
            networks("deny", config.deny),
            networks("nat64", config.nat64),
        )
        self._allows_networks = bool(config.allow)
        patterns = [pattern.lower().removesuffix(".") for pattern in config.allow_names]
        self._names = frozenset(pattern for pattern in patterns if not pattern.startswith("."))
        self._suffixes = tuple(pattern for pattern in patterns if pattern.startswith("."))
        # Threads of its own, so that a look-up that hangs never holds up anybody else's thread. A slot
        # stays taken until its thread ends, even if nobody waits for it any more.
        self._threads = trio.CapacityLimiter(_LOOKUPS)

    def parse(self, url: str) -> Address:
        """Return the address that `url` names, if it may be called as far as can be told without a look-up.

        Raises `FetchError` (`refused`) for the grammar, the port, a special name or a literal address.
        """
        return self._check(parse(url))

    def join(self, base: Address, location: bytes) -> Address:
        """Return the address that a Location header names, seen from `base`; checked as by `parse`.

        Raises `FetchError` (`refused`), also for a step from https down to http.
        """
        try:
            text = location.decode()
        except UnicodeDecodeError:
            raise refused("malformed", "the page redirects to a URL that is no UTF-8") from None
        try:
            address = resolve(base, text)
            if base.scheme == "https" and address.scheme == "http":
                raise refused("downgrade", "it leads from https to http")
            return self._check(address)
        except FetchError as error:
            message = f"the page redirects to where no fetch may go: {error.message}"
            raise refused(error.reason, message, hint=error.hint) from None

    async def addresses(self, address: Address) -> tuple[str, ...]:
        """Return the numeric addresses to try for `address`, best first, at most four.

        A name is looked up once, as an absolute one, for at most five seconds once there is a thread for
        it. If cancelled, the look-up is abandoned. Raises `FetchError`: `dns` if there is no answer,
        `refused` if one of the answers may not be connected to, `internal` if this machine has no
        descriptor, memory or thread left to ask with.
        """
        literal = _literal(address.host)
        if literal is not None:
            answers: Sequence[object] = (address.host,)
        elif _is_localhost(address.host):
            answers = _LOCALHOST
        else:
            answers = await self._look_up(address.host)
        return self._checked(answers)

    def _check(self, address: Address) -> Address:
        if self._ports is not None and address.port not in self._ports:
            message = "the port of the URL is not one that may be called"
            raise refused("port", message, hint=PORT_HINT)
        literal = _literal(address.host)
        if literal is not None:
            self._permit(literal)
            if isinstance(literal, IPv6Address) and literal.ipv4_mapped is not None:
                # Another spelling of an IPv4 server, which the gate counts as that one.
                return replace(address, host=str(literal.ipv4_mapped))
        elif not self._named(address.host):
            raise refused(
                "special_name",
                "the host of the URL is a name for private use",
                hint=NAME_HINT,
            )
        elif _is_localhost(address.host):
            self._permit_localhost()
        return address

    def _permit_localhost(self) -> None:
        try:
            self._checked(_LOCALHOST)
        except FetchError as error:
            hint = LOCALHOST_HINT if error.hint == NETWORK_HINT else error.hint
            raise refused(error.reason, error.message, hint=hint) from None

    def _named(self, host: str) -> bool:
        """Say whether `host` is a name of the public kind, or one that the operator admits."""
        labels = host.split(".")
        special = len(labels) == 1 or labels[-1] in _SPECIAL_ENDS or ".".join(labels[-2:]) in _SPECIAL_ZONES
        if not special or host in self._names or host.endswith(self._suffixes):
            return True
        # Names of this machine and of a private network's own machines make sense only with addresses
        # that the operator has allowed; each of those is checked all the same.
        return self._allows_networks and (len(labels) == 1 or labels[-1] == "localhost")

    def _checked(self, answers: Iterable[object]) -> tuple[str, ...]:
        """Return what to try of a name's answers. One bad answer refuses them all."""
        found = list(islice(answers, ANSWERS + 1))
        if not found:
            raise refused("no_address", "the site's name has no address")
        if len(found) > ANSWERS:
            raise refused("too_many_addresses", f"the site's name has more than {ANSWERS} addresses")
        checked: dict[IPv4Address | IPv6Address, None] = {}
        for answer in found:
            if not isinstance(answer, str):
                raise refused("no_address", "the look-up of the site's name gave no address")
            if "%" in answer:
                raise refused("zone_id", "the site's name leads to a network interface (a zone id)")
            literal = _literal(answer)
            if literal is None:
                raise refused("no_address", "the look-up of the site's name gave no address")
            self._permit(literal)
            mapped = literal.ipv4_mapped if isinstance(literal, IPv6Address) else None
            checked[mapped or literal] = None
        return _to_try(list(checked))

    def _permit(self, literal: IPv4Address | IPv6Address) -> None:
        if self._networks.allowed(literal):
            return
        hint = NETWORK_HINT
        if self._networks.denied(literal):
            hint = "the operator's `deny` lists the server's network"
        elif is_nat64(literal):
            hint = "an operator can list the prefix of the network's own NAT64 in `nat64`"
        raise refused("special_address", "the server's address is not one of the public Internet", hint=hint)

    async def _look_up(self, host: str) -> Sequence[object]:
        try:
            if self._resolve is None:
                return await self._ask_system(host)
            with trio.fail_after(LOOKUP_SECONDS):
                return await self._resolve(host)
        except FetchError:
            raise
        except (trio.TooSlowError, TimeoutError):
            message = "the look-up of the site's name took too long"
            raise FetchError("dns", message, transient=True) from None
        except socket.gaierror as error:
            if error.errno == socket.EAI_MEMORY:
                raise spent() from None
            if error.errno in _FOR_THE_TIME_BEING:
                message = "the look-up of the site's name failed for the time being"
                raise FetchError("dns", message, transient=True) from None
            raise FetchError("dns", "the site's name does not exist", transient=False) from None
        except Exception as error:
            if is_spent(error):
                raise spent() from None
            # A resolver of the application's own may raise whatever it likes.
            transient = isinstance(error, OSError)
            raise FetchError("dns", "the look-up of the site's name failed", transient=transient) from None

    async def _ask_system(self, host: str) -> Sequence[object]:
        scope = trio.CancelScope()
        try:
            with scope:
                return await trio.to_thread.run_sync(
                    _getaddrinfo,
                    host,
                    thread_name="sift-batch look-up",
                    abandon_on_cancel=True,
                    limiter=_Turn(self._threads, scope),  # type: ignore[arg-type]  # as good as a limiter
                )
        except RuntimeError:  # no thread could be started
            raise spent() from None
        raise trio.TooSlowError


class _Turn:
    """Waits for a thread, and begins to count the seconds of a look-up when there is one.

    Names whose servers never answer may hold all threads for a while. That is no failure of the other
    names: these wait, for as long as the whole fetch may take.
    """

    def __init__(self, threads: trio.CapacityLimiter, scope: trio.CancelScope) -> None:
        self._threads = threads
        self._scope = scope

    async def acquire_on_behalf_of(self, borrower: object) -> None:
        await self._threads.acquire_on_behalf_of(borrower)
        self._scope.deadline = trio.current_time() + LOOKUP_SECONDS

    def release_on_behalf_of(self, borrower: object) -> None:
        self._threads.release_on_behalf_of(borrower)


def _getaddrinfo(host: str) -> list[str]:
    """Look `host` up. Runs in a thread."""
    # The dot at the end makes the name absolute: without it the resolver would try it with the search
    # domains of this machine, which tells them the name and reaches servers that only look like it.
    # As bytes, it is not mapped once more on the way.
    found = socket.getaddrinfo(
        f"{host}.".encode("ascii"), None, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
    )
    answers = []
    for _, _, _, _, sockaddr in found:
        text = str(sockaddr[0])
        if len(sockaddr) > 3 and sockaddr[3] and "%" not in text:
            text += "%"  # an interface of this machine, which the text does not show
        answers.append(text)
    return answers


def _literal(text: str) -> IPv4Address | IPv6Address | None:
    if ":" not in text and not text[-1:].isdigit():
        return None  # nearly every host; an exception would cost more than all the rest
    try:
        return ip_address(text)
    except ValueError:
        return None


def _is_localhost(host: str) -> bool:
    return host == "localhost" or host.endswith(".localhost")


def _to_try(literals: list[IPv4Address | IPv6Address]) -> tuple[str, ...]:
    """Choose the first few, both families in turn, so that one without a route never takes all places."""
    first = [literal for literal in literals if literal.version == literals[0].version]
    other = [literal for literal in literals if literal.version != literals[0].version]
    turns = [literal for pair in zip(first, other, strict=False) for literal in pair]
    turns += first[len(other) :] + other[len(first) :]
    return tuple(map(str, turns[:TRIES]))
