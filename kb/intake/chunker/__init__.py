"""Where is a text cut? Pure: markdown becomes chunks with exact offsets and heading path."""
