"""Where do the bytes lie? Content-addressed files, written whole and never overwritten."""
