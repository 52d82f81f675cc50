"""What would a settings file look like that says what is in force?

What has its default is commented out, so that a later version's defaults still apply. Nothing here
reads settings.
"""

import json
from collections.abc import Sequence
from typing import Final

from ..service._fields import Field, Kind, all_fields, allowed
from ..service._settings import SettingRow

_HEAD: Final = """# Settings for `sift-batch serve --config FILE`. What is commented out has its default.
# The environment wins over this file (SIFT_BATCH_ENGINE_TTL and so on), and flags over both.
# `sift-batch config check --config FILE` says what is wrong with it.
"""
_BARE: Final = frozenset({Kind.COUNT, Kind.SWITCH})
_HIDDEN: Final = "***"


def settings_toml(rows: Sequence[SettingRow]) -> str:
    """Return the settings as the text of a file."""
    lines = [_HEAD.rstrip()]
    section = ""
    for row in rows:
        field = all_fields()[row.name]
        if field.section != section:
            section = field.section
            lines += ["", f"[{section}]"]
        lines.append(_line(field, row))
    return "\n".join(lines) + "\n"


def _line(field: Field, row: SettingRow) -> str:
    if _HIDDEN in row.value:
        return f"# {field.name} holds a secret, and is left out"
    given = row.origin.source != "default"
    statement = f"{field.name} = {toml_value(field, row.value)}"
    return statement if given else f"# {statement}  # {allowed(field)}"


def toml_value(field: Field, text: str) -> str:
    """Return a value, as `config show` has it, as TOML."""
    if field.kind in _BARE or (field.kind is Kind.SIZE and text.isdecimal()):
        return text
    if field.kind is Kind.LIST or (field.kind is Kind.PORTS and text != "any"):
        items = [item for item in text.split(",") if item]
        quote = field.kind is Kind.LIST
        return f"[{', '.join(_quoted(item) if quote else item for item in items)}]"
    return _quoted(text)


def _quoted(text: str) -> str:
    # What JSON escapes, TOML escapes alike: settings hold printable characters only.
    return json.dumps(text, ensure_ascii=False)
