"""What did the person type? One click command per file, thin over the library."""
