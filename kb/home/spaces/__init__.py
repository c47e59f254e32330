"""Which homes does a command use? The user's, the project's, or both, each asked by itself."""
