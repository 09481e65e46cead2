"""The entry point: Ctrl-C ends it without a traceback wherever it strikes; everything else is shown."""

import sys
from types import SimpleNamespace

import pytest

from foxhunt.__main__ import run


def raising(error, cause=None, context=None):
    def main():
        try:
            if context:
                raise context
        except BaseException:
            raise error from cause
        raise error from cause

    return SimpleNamespace(main=main)


@pytest.mark.parametrize(
    "case",
    [
        {"error": KeyboardInterrupt()},
        {"error": RuntimeError("Error calling __set_name__"), "cause": KeyboardInterrupt()},
    ],
)
def test_ctrl_c_while_a_library_is_imported_ends_with_130(monkeypatch, case):
    monkeypatch.setitem(sys.modules, "foxhunt.cli", raising(**case))
    with pytest.raises(SystemExit) as stopped:
        run()
    assert stopped.value.code == 130


def test_an_interrupt_two_causes_deep_is_one_too(monkeypatch):
    inner = RuntimeError("Error calling __set_name__")
    inner.__cause__ = KeyboardInterrupt()
    monkeypatch.setitem(sys.modules, "foxhunt.cli", raising(ImportError("numpy"), inner))
    with pytest.raises(SystemExit) as stopped:
        run()
    assert stopped.value.code == 130


@pytest.mark.parametrize("context", [None, KeyboardInterrupt()])
def test_an_error_while_ctrl_c_is_handled_is_shown(monkeypatch, context):
    monkeypatch.setitem(sys.modules, "foxhunt.cli", raising(OSError("disk full"), context=context))
    with pytest.raises(OSError, match="disk full"):
        run()
