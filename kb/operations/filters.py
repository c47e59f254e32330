"""The filters that every question shares, for whoever makes a request."""

from kb.model.search import Filters
from kb.model.source import display_name

__all__ = ["Filters", "display_name"]
