"""Threads may decode a type of record for the first time at once."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
DECODING = ROOT / "kb" / "model" / "decoding.py"
# How msgspec is told to decode by a type.
BY_TYPE = re.compile(
    r"msgspec\.convert\(|msgspec\.(json|msgpack|yaml|toml)\.(Decoder\(|decode\([^\n]*type=)"
)
_THREADS = """
import sys, threading
from types import ModuleType
from kb.model.decoding import convert, decode_json, msgpack_decoder

RECORDS = '''
from __future__ import annotations
from msgspec import Struct
class Inner(Struct):
    number: int | None = None
    names: dict[str, list[str]] | None = None
class Record(Struct):
    many: list[Inner] | None = None
    one: Inner | None = None
'''
DATA = b'{"many": [{"number": 1}], "one": {"names": {"a": ["b"]}}}'

def read(module, barrier, turn):
    barrier.wait()
    if turn == 0:
        read = decode_json(DATA, module.Record)
    elif turn == 1:
        read = convert({"many": [{"number": 1}]}, module.Record)
    else:
        read = msgpack_decoder(module.Record).decode(b"\\x81\\xa4many\\x91\\x81\\xa6number\\x01")
    assert read.many[0].number == 1

sys.setswitchinterval(1e-6)
for number in range(200):
    module = ModuleType(f"records_{number}")
    sys.modules[module.__name__] = module
    exec(RECORDS, module.__dict__)
    barrier = threading.Barrier(3)
    threads = [threading.Thread(target=read, args=(module, barrier, turn)) for turn in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_threads_that_learn_a_type_at_once() -> None:
    """Left to msgspec, one of them reads what another has half made, and the process dies."""
    ran = subprocess.run([sys.executable, "-c", _THREADS], capture_output=True, text=True, cwd=ROOT)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_nothing_else_decodes_by_a_type() -> None:
    """So it holds for servers, workers, agents' processes and programs that use the library."""
    others = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for folder in ("kb", "cli")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path != DECODING
        for match in BY_TYPE.finditer(path.read_text("utf-8"))
    ]
    assert others == []
    assert BY_TYPE.search(DECODING.read_text("utf-8"))
