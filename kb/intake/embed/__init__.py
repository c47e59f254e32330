"""How does a text become a vector? A model computes it; texts of near meaning have near vectors."""
