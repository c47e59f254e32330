"""How is something done here? Entries answer, those that ship with kb among them.

It gives guidance only where it is sure enough, and keeps the signals that agents leave for a
person. It opens no homes: its caller hands in the stores that it asks.
"""

from kb.knowledge.guide.answers import Guidance, GuideChunk, SignalReceipt
from kb.knowledge.guide.catalog import EntryCatalog, ask
from kb.knowledge.guide.guide import Guide

__all__ = ["EntryCatalog", "Guidance", "Guide", "GuideChunk", "SignalReceipt", "ask"]
