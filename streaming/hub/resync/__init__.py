"""The pages of resyncs: prepared beside the batches, sent by them."""
