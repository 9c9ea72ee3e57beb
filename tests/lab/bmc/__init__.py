"""The BMCs of a rack."""
