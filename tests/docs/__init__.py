"""The documentation is true: its commands run, its links lead somewhere, its lists are those of the code."""
