"""Rows in eight bits, by which a scan knows the few rows that it must look at in full.

A row is kept as whole numbers from -127 to 127 and the step between them (scalar quantisation). A
product of such rows with a query reads a quarter of the memory that the vectors take, and is off by
no more than the parts that rounding left out, whose lengths are known: by the inequality of Cauchy
and Schwarz |x q - x' q'| <= |x - x'| |q| + |x'| |q - q'|.
"""

import functools
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from kb.intake.embed.runtime import session_of
from kb.search.index.files import CacheDamaged, FileMark, fsync_file, mark_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

# Of fewer rows the vectors themselves are read in under a millisecond.
ROWS_MIN: Final = 16_384
_BLOCK_ROWS: Final = 1_024
_ROW_LEVELS: Final = 127
# One bit less than there is room for: two products of eight bits may not fit the sixteen in which
# older processors add them up.
_QUERY_LEVELS: Final = 63
_SHIFT: Final = 64
_FIGURES: Final = 3
# The graph y = MatMulInteger(a, b) of unsigned and signed bytes, as ONNX writes it down (opset 13).
PRODUCT: Final = (
    b'\x08\x08:>\n\x18\n\x01a\n\x01b\x12\x01y"\rMatMulInteger\x12\x01g'
    b"Z\t\n\x01a\x12\x04\n\x02\x08\x02Z\t\n\x01b\x12\x04\n\x02\x08\x03"
    b"b\t\n\x01y\x12\x04\n\x02\x08\x06B\x04\n\x00\x10\r"
)


class Codes(Struct, frozen=True, kw_only=True):
    """The first rows of a segment in eight bits: as many whole blocks as there are."""

    blocks: "NDArray[np.int8]"
    """Shape (blocks, dim, rows of a block): what one product reads lies together."""
    figures: "Floats"
    """Shape (3, rows): a row's step, its codes' sum times step and shift, the length left out."""

    @property
    def rows(self) -> int:
        """How many rows there are, from the first on."""
        return len(self.figures[0])

    def products(self, query: "Floats") -> tuple["Floats", "Floats"]:
        """Rough cosines with a query of length 1, and by how much each may be off; (rows,) both.

        Single precision rounds beyond that.
        """
        import numpy as np

        step = float(np.abs(query).max()) / _QUERY_LEVELS
        levels = np.rint(query / step)
        left_out = float(np.linalg.norm(query - levels * step))
        asked = (levels + _SHIFT).astype(np.uint8).reshape(1, 1, -1)
        found = _product().run(None, {"a": asked, "b": self.blocks})[0]
        rough: Floats = found.reshape(-1).astype(np.float32)
        steps, shifts, errors = self.figures
        rough *= steps
        rough -= shifts
        rough *= np.float32(step)
        off: Floats = errors * np.float32(1 + left_out)
        off += np.float32(left_out)
        return rough, off


@functools.cache
def _product() -> Any:
    return session_of(PRODUCT)


def write_codes(folder: Path, vectors: "Floats") -> FileMark | None:
    """Write the codes of a segment's vectors, durable, under a new name; None for a short one.

    The file holds what `Codes` does: the blocks, int8, then the figures, float32, little endian.
    """
    import numpy as np

    if len(vectors) < ROWS_MIN:
        return None
    count = len(vectors) // _BLOCK_ROWS * _BLOCK_ROWS
    figures = np.empty((_FIGURES, count), dtype="<f4")
    path = folder / f"cod-{secrets.token_hex(8)}.bin"
    with open(path, "xb") as file:
        for low in range(0, count, _BLOCK_ROWS):
            block = slice(low, low + _BLOCK_ROWS)
            levels, figures[:, block] = _coded(vectors[block])
            file.write(np.ascontiguousarray(levels.T).tobytes())
        file.write(figures.tobytes())
    fsync_file(path)
    return mark_file(path)


def _coded(rows: "Floats") -> tuple["NDArray[np.int8]", "Floats"]:
    import numpy as np

    steps = np.abs(rows).max(axis=1) / np.float32(_ROW_LEVELS)
    steps[steps == 0] = 1
    levels = np.rint(rows / steps[:, None])
    left_out = rows.astype(np.float64) - levels.astype(np.float64) * steps[:, None]
    figures = np.stack(
        [steps, levels.sum(axis=1) * steps * _SHIFT, np.linalg.norm(left_out, axis=1)]
    )
    return levels.astype(np.int8), figures.astype("<f4")


def map_codes(path: Path, rows: int, dim: int) -> Codes:
    """Map the codes of a segment of so many rows. Raises CacheDamaged."""
    import numpy as np

    blocks = rows // _BLOCK_ROWS
    count = blocks * _BLOCK_ROWS
    try:
        mapped = np.memmap(path, dtype=np.int8, mode="r").view(np.ndarray)
        codes, figures = mapped[: count * dim], mapped[count * dim :]
        return Codes(
            blocks=codes.reshape(blocks, dim, _BLOCK_ROWS),
            figures=figures.view("<f4").reshape(_FIGURES, count),
        )
    except (OSError, ValueError) as error:
        raise CacheDamaged(str(error)) from error
