"""`foxhunt` and `python -m foxhunt`."""

import sys


def run() -> None:
    """Run the command line; Ctrl-C while it is still being imported is no traceback either."""
    try:
        from foxhunt.cli import main

        main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    run()
