"""How does a picture become text? By tesseract, where it is installed, a page at a time.

In the background, after all other jobs. It finds no files and keeps no pictures.
"""
