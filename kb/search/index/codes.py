"""Scalar quantisation: rows in eight bits, by which a scan selects the few rows to read in full.

A row is stored as integers from -127 to 127 and the step between them. A product of such rows with
a query reads a quarter of the vectors' memory. Its error is bounded by the lengths of the rounding
errors, which are known, by the Cauchy-Schwarz inequality:
|x q - x' q'| <= |x - x'| |q| + |x'| |q - q'|.
"""

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from kb.intake.embed.runtime import session_of
from kb.search.index.files import CacheDamaged, FileMark, mark_file
from kb.store.content.durable import fsync_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

# With fewer rows a scan of the vectors takes no longer than one of their codes.
ROWS_MIN: Final = 4_096
# A product goes through a block in strips of this many columns or fewer, so that it reads a block,
# and thereby all blocks, from end to end: processors read that ahead best.
_BLOCK_ROWS: Final = 64
_WRITTEN_ROWS: Final = 8_192
_ROW_LEVELS: Final = 127
# Older processors add up two products in sixteen bits, where those of seven bits do not overflow.
_QUERY_LEVELS: Final = 127
_QUERY_LEVELS_OF_OLD: Final = 63
_SHIFT: Final = 64
_FIGURES: Final = 3
# The graph y = MatMulInteger(a, b) of unsigned and signed bytes, serialised as ONNX (opset 13).
PRODUCT: Final = (
    b'\x08\x08:>\n\x18\n\x01a\n\x01b\x12\x01y"\rMatMulInteger\x12\x01g'
    b"Z\t\n\x01a\x12\x04\n\x02\x08\x02Z\t\n\x01b\x12\x04\n\x02\x08\x03"
    b"b\t\n\x01y\x12\x04\n\x02\x08\x06B\x04\n\x00\x10\r"
)


class Codes(Struct, frozen=True, kw_only=True):
    """The quantised rows of a segment."""

    blocks: "NDArray[np.int8]"
    """Shape (blocks, dim, rows per block), so that one product reads contiguous memory; the last
    block is filled up with zeros."""
    figures: "Floats"
    """Shape (3, rows): the row's step, its codes' sum times step and shift, its rounding error."""

    @property
    def rows(self) -> int:
        """The number of quantised rows, those of the segment."""
        return len(self.figures[0])

    def products(self, query: "Floats") -> tuple["Floats", float]:
        """Approximate cosines with a query of length 1, (rows,), and what `error_bounds` needs."""
        import numpy as np

        levels_max = _query_levels(len(query))
        step = float(np.abs(query).max()) / levels_max
        levels = np.rint(query / step)
        rounding_error = float(np.linalg.norm(query - levels * step))
        shift = levels_max + 1
        shifted = (levels + shift).astype(np.uint8).reshape(1, 1, -1)
        products = _product().run(None, {"a": shifted, "b": self.blocks})[0]
        approximate: Floats = products.reshape(-1)[: self.rows].astype(np.float32)
        steps, shifts, _ = self.figures
        approximate *= steps
        approximate -= shifts if shift == _SHIFT else shifts * np.float32(shift / _SHIFT)
        approximate *= np.float32(step)
        return approximate, rounding_error

    def error_bounds(self, rows: "NDArray[np.intp] | slice", rounding_error: float) -> "Floats":
        """How far the approximate cosines of rows may be off, of a query's `products`.

        Does not include the rounding of single precision.
        """
        import numpy as np

        bounds: Floats = self.figures[2][rows] * np.float32(1 + rounding_error)
        bounds += np.float32(rounding_error)
        return bounds

    def error_max(self, rounding_error: float) -> float:
        """The highest of all `error_bounds`."""
        return float(self.figures[2].max()) * (1 + rounding_error) + rounding_error


@functools.cache
def _product() -> Any:
    return session_of(PRODUCT)


@functools.cache
def _query_levels(dim: int) -> int:
    """Up to which number the levels of a query go: as far as the product is right."""
    import numpy as np

    highest = np.full((1, 1, dim), 2 * _QUERY_LEVELS + 1, dtype=np.uint8)
    rows = np.full((1, dim, _BLOCK_ROWS), _ROW_LEVELS, dtype=np.int8)
    products = _product().run(None, {"a": highest, "b": rows})[0]
    is_right = (products == dim * int(highest.max()) * _ROW_LEVELS).all()
    return _QUERY_LEVELS if is_right else _QUERY_LEVELS_OF_OLD


def write_codes(folder: Path, vectors: "Floats") -> FileMark | None:
    """Write the codes of a segment's vectors, durably, under a new name; None for a short one.

    The file contains the blocks, int8, then the figures, float32, little endian; see `Codes`.
    """
    import secrets

    import numpy as np

    if len(vectors) < ROWS_MIN:
        return None
    count, dim = vectors.shape
    figures = np.empty((_FIGURES, count), dtype="<f4")
    path = folder / f"cod-{secrets.token_hex(8)}.bin"
    with open(path, "xb") as file:
        for low in range(0, count, _WRITTEN_ROWS):
            rows = vectors[low : low + _WRITTEN_ROWS]
            levels, figures[:, low : low + len(rows)] = _quantise(rows)
            blocks = np.zeros((-(-len(rows) // _BLOCK_ROWS), _BLOCK_ROWS, dim), dtype=np.int8)
            blocks.reshape(-1, dim)[: len(rows)] = levels
            file.write(blocks.transpose(0, 2, 1).tobytes())
        file.write(figures.tobytes())
    fsync_file(path)
    return mark_file(path)


def _quantise(rows: "Floats") -> tuple["NDArray[np.int8]", "Floats"]:
    import numpy as np

    steps = np.abs(rows).max(axis=1) / np.float32(_ROW_LEVELS)
    steps[steps == 0] = 1
    levels = np.rint(rows / steps[:, None])
    rounding_error = rows.astype(np.float64) - levels.astype(np.float64) * steps[:, None]
    figures = np.stack(
        [steps, levels.sum(axis=1) * steps * _SHIFT, np.linalg.norm(rounding_error, axis=1)]
    )
    return levels.astype(np.int8), figures.astype("<f4")


def map_codes(path: Path, rows: int, dim: int) -> Codes:
    """Map the codes of a segment with `rows` rows. Raises CacheDamaged."""
    import numpy as np

    blocks = -(-rows // _BLOCK_ROWS)
    size = blocks * dim * _BLOCK_ROWS
    try:
        mapped = np.memmap(path, dtype=np.int8, mode="r").view(np.ndarray)
        codes, figures = mapped[:size], mapped[size:]
        return Codes(
            blocks=codes.reshape(blocks, dim, _BLOCK_ROWS),
            figures=figures.view("<f4").reshape(_FIGURES, rows),
        )
    except (OSError, ValueError) as error:
        raise CacheDamaged(str(error)) from error
