"""The pages of resyncs: prepared while batches go on, sent by them."""
