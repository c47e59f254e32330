"""Where are the files kept? Content-addressed files, written whole and never overwritten."""
