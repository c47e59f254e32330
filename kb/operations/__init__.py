"""What may be asked? One thing to ask or do in each file, with all the names it goes by."""
