"""What does a picture say of itself? Its size, when and where it was taken, and what people wrote.

Read from the headers alone by loops with bounds; no pixel is decoded.
"""
