"""How is a language model asked? A system prompt and a question become its answer."""

from kb.intake.model_server.timing import Timing
from kb.knowledge.llm.factory import make_provider
from kb.knowledge.llm.json_answer import json_of
from kb.knowledge.llm.protocol import NoProvider, Provider

__all__ = ["NoProvider", "Provider", "Timing", "json_of", "make_provider"]
