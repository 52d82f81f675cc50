"""`python -m sift_batch` is the command line. Next room: `cli`."""

import sys

if __name__ == "__main__":
    try:
        from .cli import main
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(main())
