"""What does kb keep? Checksummed records in one ordered, transactional environment."""
