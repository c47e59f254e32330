"""Who does the jobs? Threads claim them, work outside any transaction, then commit."""
