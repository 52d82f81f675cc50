"""What may this process say of itself? Nothing of a target, whichever library speaks.

Every command calls `seal_process` first of all. Next: the command.
"""

import logging

import sift_batch


def seal_process() -> None:
    """Keep targets out of whatever this process may say of itself.

    Only errors are logged: the progress of a batch, and trouble with its store, are shown by `Screen`.
    """
    logging.getLogger("sift_batch").setLevel(logging.ERROR)
    sift_batch.seal_logging()
