"""How is a home looked after? It is checked, repaired, backed up and compacted."""
