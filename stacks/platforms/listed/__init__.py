"""Servers of your own, listed one by one: what the platforms that have such servers share.

forms: the forms of addresses and of what ends up in requests; settings: the list, the machines' network, where the
bootstrap machine comes from; conflicts: what cannot go together in it; facility: what it means to the program;
component: what components are told of it.
"""
