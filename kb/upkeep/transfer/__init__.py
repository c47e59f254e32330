"""How does a whole home get into another place? By its records as they are, from one moment.

Nothing is read, cut or embedded anew, and no id changes.
"""

from kb.upkeep.transfer.filling import TransferDatabase, TransferFolder, TransferTarget
from kb.upkeep.transfer.holdings import Holdings, holdings_of
from kb.upkeep.transfer.moving import TransferCounts, TransferProgress, count, transfer

__all__ = [
    "Holdings",
    "TransferCounts",
    "TransferDatabase",
    "TransferFolder",
    "TransferProgress",
    "TransferTarget",
    "count",
    "holdings_of",
    "transfer",
]
