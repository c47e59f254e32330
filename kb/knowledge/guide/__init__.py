"""How is it done here? Entries answer, those that ship with kb among them.

Useful for guidance with a minimum of sureness, and for what an agent leaves for a person where
there is none. Not for opening homes: it is given the stores that it asks.
"""

from kb.knowledge.guide.answers import Guidance, GuideChunk, Told
from kb.knowledge.guide.desk import Desk
from kb.knowledge.guide.shelf import Shelf, ask

__all__ = ["Desk", "Guidance", "GuideChunk", "Shelf", "Told", "ask"]
