"""How does a text become a vector? By a model: near in meaning is near in angle."""
