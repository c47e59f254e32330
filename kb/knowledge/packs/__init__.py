"""What is in a pack? A manifest of docs with typed links between them, and their bodies.

Useful for listing, reading and searching a set of docs that somebody else has described, and for
handing such a set on as one file. Not for searching passages: a pack is searched here by what its
manifest says.
"""
