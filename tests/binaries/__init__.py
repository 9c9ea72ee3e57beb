"""Tests of the programs that are found, downloaded or built."""
