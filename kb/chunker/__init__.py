"""Where do we cut? Pure: markdown becomes passages with exact offsets and their heading path."""

from kb.chunker.passages import FINGERPRINT, SpansOf, chunk, chunk_many, fingerprint

__all__ = ["FINGERPRINT", "SpansOf", "chunk", "chunk_many", "fingerprint"]
