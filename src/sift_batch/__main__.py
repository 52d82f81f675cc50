"""`python -m sift_batch` is the command line. Next room: `cli`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
