"""How is a home opened, and how do several answer together?"""
