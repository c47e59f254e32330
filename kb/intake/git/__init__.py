"""How is a git repository reached? By a folder, ssh or https, and by nothing that settings name.

It brings the files of one commit, in a process of its own. The notebook pushes through the same
transports.
"""
