"""The past, judged again: what was recorded goes through the hub's own decision.

Only the input columns of the tables are decided from; what the hub decided then is compared.
"""
