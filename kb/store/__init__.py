"""What is true? Checksummed records in one ordered, transactional environment."""
