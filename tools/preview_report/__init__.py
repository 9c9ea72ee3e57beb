"""What a change does to every facility, as one Markdown file with pictures: `make preview-report BASE=<commit>`.

facilities  which facilities a change is about
rehearsal   one facility previewed without credentials or network, as plain data
changes     two such rehearsals → what differs, pure
markdown    what differs → text, pure
command     git, processes and files around them
"""
