"""How does a doc get into the store? By one transaction, with version, ledger and job."""
