"""What do the pages of docs/reference/ say? What the code says of itself."""
