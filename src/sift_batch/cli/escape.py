"""How is text of somebody else's shown on a terminal? Written out, so that it can't be obeyed."""

import re
from typing import Final

# C0 and C1 controls, and the marks that turn text round: what a terminal may obey instead of show.
_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_CONTROLS_IN_TEXT: Final = re.compile(f"(?![\t\n]){_CONTROLS.pattern}")


def visible(text: str) -> str:
    """Return `text` with everything that a terminal could obey written out as an escape."""
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def visible_text(text: str) -> str:
    """Return a text of many lines with all but its line ends and tabs made visible."""
    return _CONTROLS_IN_TEXT.sub(lambda match: f"\\u{ord(match[0]):04x}", text.replace("\r\n", "\n"))
