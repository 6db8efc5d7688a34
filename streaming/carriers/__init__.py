"""Carriers: where the rows of a batch are kept, on the driver or on the executors."""
