"""How does a person find what they once read? One store, its caches, and ten wings of code.

docs/ARCHITECTURE.md draws the ten wings and the order in which they import each other.
"""

__version__ = "0.1.0"
