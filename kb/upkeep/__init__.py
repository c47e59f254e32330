"""Is everything whole, copied and small: how is a home looked after?"""
