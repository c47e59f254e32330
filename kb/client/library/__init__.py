"""How does a Python program ask kb? By an object that holds its homes open: `kb.open()`."""
