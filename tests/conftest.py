"""Puts this folder on the path, for what the tests of several folders share."""
