"""What does a file that is no text say of itself?

From its first and last bytes: title, people, day and length of sound and films, the names in
archives. Pure, in the child, and nothing is decoded.
"""
