"""How is something done here? Entries answer, those that ship with kb among them.

Useful for guidance with a minimum of sureness, and for what an agent leaves for a person where
there is none. Not for opening homes: it is given the stores that it asks.
"""

from kb.knowledge.guide.answers import Guidance, GuideChunk, SignalReceipt
from kb.knowledge.guide.catalog import EntryCatalog, ask
from kb.knowledge.guide.guide import Guide

__all__ = ["EntryCatalog", "Guidance", "Guide", "GuideChunk", "SignalReceipt", "ask"]
