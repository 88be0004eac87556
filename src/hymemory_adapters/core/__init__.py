"""What every host shares: the loop, the wire, reading, validating, armour, budget, loss.

Nothing in here imports a host or knows one by name.
"""
