"""How does a store live in a PostgreSQL database? As one table of keys and values, and one lock."""
