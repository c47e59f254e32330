"""What does it mean? Texts become unit vectors, so that near in meaning is near in angle."""
