"""How is a running server asked? By the words of the command line, at its socket or address."""
