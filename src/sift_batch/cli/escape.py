"""How is text of somebody else's shown on a terminal? Written out, so that it can't be obeyed."""

import re
from typing import Final

# C0 and C1 controls, and the marks that turn text round: what a terminal may obey instead of show.
_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """Return `text` with everything that a terminal could obey written out as an escape."""
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
