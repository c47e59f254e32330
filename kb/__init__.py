"""How does a person find what they once read? One store, its caches and the rooms around them.

The rooms and the order in which they may import one another are drawn in docs/ARCHITECTURE.md.
"""

__version__ = "0.1.0"
