"""`make preview-report BASE=<commit>`: shows what a change does to every facility, as a Markdown file with pictures.

facilities  which facilities a change affects
rehearsal   the preview of a facility without credentials or network, as plain data
changes     compares two rehearsals; pure functions
markdown    writes the comparison as text; pure functions
command     git, processes and files
"""
