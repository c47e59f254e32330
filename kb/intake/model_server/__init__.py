"""How is a model's server asked over HTTP? One client, whose address, key and retries are checked.

Language models and embedding models are asked by it.
"""
