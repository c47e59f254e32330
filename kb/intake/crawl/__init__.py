"""How do sources that lie elsewhere and have many docs come in, and stay current?

Follows sitemaps, lists and links of a site from one address, and takes the entries of feeds and the
files of repositories. Pages and feeds go through the one fetcher, repositories through
`kb.intake.git`.
"""
