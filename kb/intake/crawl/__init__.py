"""How do the pages of a site come in, and stay current?

Follows sitemaps, lists and links from one address, and takes the entries of feeds. Every request
goes through the one fetcher.
"""
