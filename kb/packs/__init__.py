"""What is in a pack? A manifest of docs with typed links between them, and their bodies.

Useful for listing, reading and searching a set of docs that somebody else has described. Not for
passages or meaning: a pack is searched by what its manifest says.
"""
