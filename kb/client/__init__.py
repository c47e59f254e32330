"""How does a command ask a server? By the operation itself, over HTTP or the home's socket."""
