"""What does one page say? The fetch that the command line gives to the engine (extra `fetch`).

`open_plain_fetch` gives it: a plain HTTP GET through the gate, with HTML, text and JSON as text;
`check_url` and `unsupported_option` say beforehand what it would refuse. It does not select, convert or
archive anything, and it guards no address yet: it connects to whatever a URL names, private networks
included. Next: `_plain` (the exchange), `_address` (what a URL names), `_text` (what the bytes say).
"""

from ._address import BadURL, check_url
from ._plain import open_plain_fetch, unsupported_option

__all__ = ["BadURL", "check_url", "open_plain_fetch", "unsupported_option"]
