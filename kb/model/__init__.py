"""What flows? Frozen records and their ids; no input or output happens here."""
