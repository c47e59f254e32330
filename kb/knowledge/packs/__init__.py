"""What is in a pack? A manifest of docs with typed links between them, and their bodies.

Lists, reads and searches a set of docs by what its manifest says of them, and writes such a set as
one file. It does not search chunks.
"""
