"""Puts this folder on the path, for what the tests of several folders share."""

import signal

# A suite started in the background ignores SIGINT, and then so would the programs whose Ctrl-C is tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
