"""What is built on docs and search? Topics, packs, entries, notes, guidance, answers."""
