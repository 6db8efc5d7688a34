"""A hub at work: the flow of a batch, the process around it, and the work beside the batches."""
