"""What do others publish? Entries with their versions, passages and vectors, as plain files.

Useful for publishing a folder of entries, for reading what was published, and for saying what of
it is to be taken. Not for writing into a home: `kb/home/services/registries.py` does that.
"""
