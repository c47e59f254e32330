"""How is it taken in? In one transaction: doc, version, ledger, job and seen record together."""
