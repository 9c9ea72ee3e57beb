"""What can be ordered, where, at what price, and how much of it is left."""
