"""Which chunks match a query? Candidates are found, filtered, fused, and given their text."""
