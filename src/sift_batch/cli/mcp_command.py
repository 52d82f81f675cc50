"""What does `sift-batch mcp` do?

Seals the process, takes standard input and output for messages alone, and serves the tools until the
client closes its side. Next: `sift_batch.mcp`, which has the tools.
"""

import os
import signal
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio

import sift_batch

from .plan import Refused
from .process import seal_process
from .screen import Screen
from .serve_command import FOLDER_FAULTS, allowed, close_ways_out, read_settings
from .signals import ending_signals

if TYPE_CHECKING:
    from .._client import Client
