"""What is still to do? Durable jobs that are claimed, renewed, finished and reclaimed."""
