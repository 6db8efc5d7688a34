"""Metrics for Prometheus: what there is (`catalogue`), and where its values come from.

The catalogue knows nothing of Slackwater, so that agents use it too. Values are facts: nothing here
reads a table, asks Kafka or starts a job.
"""
