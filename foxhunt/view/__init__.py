"""A compiled program for people: explanations of its parts, drawings of its steps, measured times."""
