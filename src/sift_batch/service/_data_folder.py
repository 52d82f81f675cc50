"""What stands in the folder of a service, beside its store? The key of its cursors.

The folder is made if there is none, and is this user's alone. The single user's key stands in it too: that
is `_callers`' business.
"""

import secrets
from pathlib import Path
from typing import Final

from sift_batch import StoreError

from ._cursors import KEY_BYTES
from ._private_file import PrivateFileError, make_private, make_private_folder, read_private, replace_private
from ._service_config import ServiceConfig

CURSOR_KEY_FILE: Final = "cursor-key"


def data_folder(config: ServiceConfig) -> Path:
    """Return the folder of a service, made if there is none.

    Raises `ValueError` if none is named, `PrivateFileError` if others may write in it or it can't be made.
    """
    if config.data is None:
        raise ValueError("service.data must name the folder of the store")
    folder = Path(config.data).absolute()
    make_private_folder(folder)
    return folder


def cursor_key(folder: Path) -> bytes:
    """Return the key that cursors are signed with, made at the first start. Raises `StoreError`.

    One that is not whole, as after a disk was full, is no secret: a new one takes its place. Only who holds
    the store of the folder may ask.
    """
    path, new = folder / CURSOR_KEY_FILE, secrets.token_bytes(KEY_BYTES)
    try:
        make_private(path, new)
        key, _ = read_private(path, limit=KEY_BYTES)
        if len(key) < KEY_BYTES:
            replace_private(path, new)
            key = new
    except PrivateFileError:
        text = f"its file {CURSOR_KEY_FILE} can't be made or used; remove it, and see that there is room"
        raise StoreError(text) from None
    return key
