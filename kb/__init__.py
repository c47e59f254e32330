"""How does a person find what they once read? One store, its caches, and ten wings of code.

docs/ARCHITECTURE.md draws the ten wings and the order in which they import each other.
Programs use `kb.open`: docs/how-to/python.md says how, and what of it stays. `__init__.pyi` says
the same to type checkers, so that nothing below this file seems to import what is above it.
"""

__version__ = "0.1.0"
__all__ = ["Home", "__version__", "errors", "open"]


def __getattr__(name: str) -> object:
    """What programs use, loaded when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'kb' has no attribute {name!r}")
    from importlib import import_module

    if name == "errors":
        return import_module("kb.errors")
    value: object = getattr(import_module("kb.client.library.home"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The names that are there, also those that are not loaded yet."""
    return sorted({*globals(), *__all__})
