"""What the layout promises, and what a change of it means."""
