"""How does a whole home get into another place? By its records as they are, from one moment.

Nothing is read, cut or embedded anew, and no id changes.
"""

from kb.upkeep.transfer.filling import DatabaseTarget, FolderTarget, Target
from kb.upkeep.transfer.holdings import Holdings, holdings_of
from kb.upkeep.transfer.moving import TransferCounts, TransferProgress, count, transfer

__all__ = [
    "DatabaseTarget",
    "FolderTarget",
    "Holdings",
    "Target",
    "TransferCounts",
    "TransferProgress",
    "count",
    "holdings_of",
    "transfer",
]
