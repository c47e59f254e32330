"""Makes the helper `index_home` importable, from here and from other folders of tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
