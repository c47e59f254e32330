"""Which model reads many languages? The files beside this one; kb opens them, nothing is run."""
