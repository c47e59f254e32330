"""Which stores are asked? The user's, the project's, or both, each by itself."""
