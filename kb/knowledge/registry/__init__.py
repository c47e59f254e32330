"""How are entries published and pulled? As plain files that any host can serve.

Publishes a folder of entries, reads what others have published, and plans what to take of it. It
does not write into a home: `kb/home/services/registries.py` does that.
"""
