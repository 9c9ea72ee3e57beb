"""Your own servers, listed one by one: what the platforms with such servers share.

forms      validation of addresses, and of values that end up in requests
settings   the list, the machines' network, the kind of bootstrap machine
conflicts  settings that contradict each other
facility   what the settings mean for the program
component  the settings in the form that components take
"""
