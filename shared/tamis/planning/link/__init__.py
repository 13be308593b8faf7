"""The link between edges and Kafka: which half of an operator runs at edges, and how much they send then.

Begin with `placement`.
"""
