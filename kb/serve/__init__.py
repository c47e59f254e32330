"""Who may ask from outside, and how?

Protocols over the tools: they translate, and decide nothing.
"""
