"""What orders cost: prices of the Metal API, or of a file, put to the orders that a program makes.

prices      the price list, and where each price is found in it
estimate    orders and prices → lines and totals, pure
function    the provider's function `metal-ipi:index:cost`
"""
