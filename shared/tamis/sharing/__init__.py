"""Topic sharing: which topic serves which reader of a stream, and which tuples each topic keeps.

A reader (an alert, or a subscription from outside the fleet) makes one read request for each stream that it
reads. `topic_assignment` gives each request a topic. The choice (`topic_choice`) compares the cost of all
topics of the stream, estimated from the selectivity of their filters (`selectivity`).
`topic_plans` and `entries` derive from the requests of a topic which tuples the edge publishes on it.

Source: kuntschke-2006 (matching and relaxing predicates), cai-2021, section 4.2 (shared omission).
"""
