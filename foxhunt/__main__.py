"""`foxhunt` and `python -m foxhunt`."""

import sys


def run() -> None:
    """Run the command line; Ctrl-C while it is still being imported is no traceback either."""
    try:
        from foxhunt.cli import main

        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if not _caused_by_interrupt(error):
            raise
        sys.exit(130)


def _caused_by_interrupt(error: BaseException) -> bool:
    """Whether Ctrl-C is behind it: Python 3.11 makes a RuntimeError of one that hits an import of numpy.

    Only causes count. An error while Ctrl-C was being handled has it as its context, and must be shown.
    """
    cause = error.__cause__
    return cause is not None and (isinstance(cause, KeyboardInterrupt) or _caused_by_interrupt(cause))


if __name__ == "__main__":
    run()
