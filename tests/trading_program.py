"""The program of tests/trading.yaml, at any dims."""

import re
from pathlib import Path

TEXT = (Path(__file__).parent / "trading.yaml").read_text()


def trading_program(**dims: int) -> str:
    """Its YAML without a program name, some of its dims changed."""
    text = TEXT
    for name, size in dims.items():
        text, found = re.subn(rf"^  {name}: \d+$", f"  {name}: {size}", text, flags=re.MULTILINE)
        assert found == 1, f"no dim {name}"
    return text


def dim(name: str) -> int:
    """A dim as the file has it."""
    return int(re.search(rf"^  {name}: (\d+)$", TEXT, re.MULTILINE)[1])
