"""What can be asked of kb? One operation in each file, with all the names it goes by."""
