"""What does a language model say? A system prompt and a question become its answer."""

from kb.llm.factory import make_provider
from kb.llm.json_answer import json_of
from kb.llm.protocol import NoProvider, Provider
from kb.llm.timing import Timing

__all__ = ["NoProvider", "Provider", "Timing", "json_of", "make_provider"]
