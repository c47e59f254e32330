"""How are entries published and pulled? As plain files that any host can serve.

Publishes a folder of entries, reads what others have published, and plans which entries to pull.
`kb/home/services/registries.py` writes them into a home.
"""
