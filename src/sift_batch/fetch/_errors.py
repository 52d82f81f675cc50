"""How can a target fail? The closed list of codes, and the one error that carries them.

Every way a site, a page or an option can misbehave ends in one of these. Texts and hints are written
where the failure is found, in our own words: they never hold a URL, a host, an address or the text of
a library's exception. Which code means what is a table, so that docs and tests can be made from it.
"""

from types import MappingProxyType
from typing import Final

from .._model.errors import TargetError

CODES: Final = MappingProxyType(
    {
        # code: (status an API answers with, whether a later try can help)
        "refused": (403, False),
        "robots": (403, False),
        "blocked": (403, False),
        "page_not_found": (404, False),
        "page_gone": (410, False),
        "auth_required": (502, False),
        "http_error": (502, False),
        "too_large": (413, False),
        "unsupported_type": (415, False),
        "bad_option": (422, False),
        "busy": (429, True),
        "timeout": (504, True),
        "dns": (502, True),
        "connect": (502, True),
        "tls": (502, False),
        "protocol": (502, True),
        "redirect_loop": (502, False),
        "server_error": (502, True),
        "extract_failed": (502, False),
        "internal": (500, True),
    }
)

_ADVICE: Final = MappingProxyType(
    {
        # What helps whatever the case, and whoever asks. Where more is known, a hint of its own is given.
        "blocked": "the site wants no such visitor; an operator can say who asks in `user_agent`",
        "auth_required": "there are no logins here; give the URL of a page that needs none",
        "dns": "check the name in the URL; if it is right, try again later",
        "connect": "try again later; if it stays so, check the host and the port of the URL",
        "protocol": "try again later; if it stays so, the site's server is broken",
        "redirect_loop": "give the URL at the end of the redirects",
        "server_error": "try again later",
    }
)

REASONS: Final = frozenset(
    {
        "bad_character",
        "content_mismatch",
        "downgrade",
        "encoding",
        "host_syntax",
        "idna",
        "malformed",
        "no_address",
        "numeric_host",
        "percent_in_host",
        "port",
        "scheme",
        "special_address",
        "special_name",
        "too_long",
        "too_many_addresses",
        "userinfo",
        "zone_id",
    }
)
"""Why a target is `refused`."""


class FetchError(TargetError):
    """A target failed for good. `code` is one of `CODES`; `reason` says more where it is `refused`.

    `status` and `retryable` follow from the code. `transient` says of an exchange that gave no answer
    that the same request, a moment later, could end otherwise; `_hops` tries it again then, as it does
    after some statuses. Without a `hint` it is the general advice for the code, if there is any. The
    texts are safe to show to whoever owns the target: they hold nothing of it.
    """

    def __init__(
        self, code: str, message: str, *, hint: str = "", reason: str = "", transient: bool = False
    ) -> None:
        status, retryable = CODES[code]
        advice = hint or _ADVICE.get(code, "")
        super().__init__(message, hint=advice, status=status, code=code, retryable=retryable)
        self.reason = reason
        self.transient = transient


def refused(reason: str, message: str, *, hint: str = "") -> FetchError:
    """Return the error of a target that may not be fetched. `hint` names what an operator could set."""
    if reason not in REASONS:
        raise ValueError("unknown reason")
    return FetchError("refused", message, hint=hint, reason=reason)
