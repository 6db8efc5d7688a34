"""Packets: files that carry records between the hub and a replica that Kafka does not reach.

A packet file is a header, one line of JSON, and behind it the records, one per line, compressed.
"""
