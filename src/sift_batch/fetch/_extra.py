"""Is everything installed that fetching needs? All of the extra `fetch`, asked before the first page.

Nothing is imported for it: what a part needs is loaded when it is used, in a worker for the most part,
where its absence would look like one bad page after the other. Next: `_fetcher`, which asks.
"""

import sys
from importlib.util import find_spec
from typing import Final

MODULES: Final = (
    "ada_url",
    "certifi",
    "charset_normalizer",
    "httpcore2",
    "jq",
    "lxml",
    "lxml_html_clean",
    "protego",
    "pypdfium2",
    "re2",
    "trafilatura",
)
"""What the extra brings, by the names under which it is imported."""


def require_extra() -> None:
    """Raise `ImportError`, saying what to install, unless all of the extra `fetch` is there."""
    if not all(_is_there(name) for name in MODULES):
        raise without_extra()


def without_extra() -> ImportError:
    """Return what to say where a part of the extra is missing."""
    return ImportError("fetching needs the extra `fetch`: pip install 'sift-batch[fetch]'")


def _is_there(name: str) -> bool:
    if name in sys.modules:
        return sys.modules[name] is not None
    try:
        return find_spec(name) is not None
    except ImportError:
        return False
