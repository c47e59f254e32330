"""How does a source become chunks with vectors?"""
