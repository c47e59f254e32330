"""What is one open home, and several that answer as one?"""
