"""Where is it? Candidates of both legs are filtered, fused, spread out and given their text."""
