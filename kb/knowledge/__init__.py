"""What do people make of their docs: topics, packs, entries, notes, answers?"""
