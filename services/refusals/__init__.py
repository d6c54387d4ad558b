"""What the refusals of the services mean to a caller: reason, code and texts of each.

A bet may be refused by the table, by limits or by the wallet, and whoever serves partners must be
able to tell of all three; so these stand beside the services, which never import one another.
"""
