"""Which records do the wings share? Frozen records and their ids, without input or output."""
