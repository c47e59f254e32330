"""What does a PDF say? Its modules are loaded when the first one is read."""
