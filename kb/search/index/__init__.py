"""How are candidates found fast? In the lexical and the dense indexes, which follow the log."""
