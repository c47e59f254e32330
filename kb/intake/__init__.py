"""How does a source become passages with vectors?"""
