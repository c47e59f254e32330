"""How is it kept current? Sources are read and handed to ingest; nothing here writes the store."""
