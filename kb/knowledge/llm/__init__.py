"""How is a language model asked? A system prompt and a question become its answer."""

from kb.knowledge.llm.factory import make_provider
from kb.knowledge.llm.json_answer import json_of
from kb.knowledge.llm.protocol import NoProvider, Provider
from kb.knowledge.llm.timing import Timing

__all__ = ["NoProvider", "Provider", "Timing", "json_of", "make_provider"]
