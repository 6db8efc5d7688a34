"""The schemas of the replicas side by side: one document of each, and how they differ."""
