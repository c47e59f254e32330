"""How are sources read and kept current? They are compared; what changed goes to ingest."""
