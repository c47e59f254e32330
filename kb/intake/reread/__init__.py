"""Which docs would be read otherwise now? After an upgrade they are read again, in the background.

From the raw bytes that the home keeps, so that a source that is gone or offline is read, too.
"""
