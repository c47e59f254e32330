"""How is it kept current? Sources are read, asked and compared, and what changed goes to ingest."""
