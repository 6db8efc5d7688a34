"""The model of a cluster, the language of scenarios, and the laws that both must keep."""
