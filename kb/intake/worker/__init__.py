"""How does it get done? Claim, work outside any transaction, commit result and job together."""
