"""What is done about each kind of object: look, decide, begin, and say what is so."""
