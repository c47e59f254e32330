"""What can one open home do? Its models, sources, packs, registries, entries, notes."""
