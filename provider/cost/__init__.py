"""The cost of a program's orders, by prices of the Metal API or of a file.

prices      the price list, and where each price is found in it
estimate    orders and prices → lines and totals: pure functions
function    the provider's function `metal-ipi:index:cost`
"""
