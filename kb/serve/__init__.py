"""How do programs and agents ask kb? Over HTTP and MCP, both translated into operations.

It decides nothing itself: the gate checks who asks, and an operation answers.
"""
