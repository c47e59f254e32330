"""How are entries published and pulled? As plain files that any host can serve.

Useful for publishing a folder of entries, for reading what was published, and for saying what of
it is to be taken. Not for writing into a home: `kb/home/services/registries.py` does that.
"""
