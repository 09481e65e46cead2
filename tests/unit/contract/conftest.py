"""The program builders of the IR tests, here too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "ir"))
