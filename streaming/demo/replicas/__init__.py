"""What the replicas of a demonstration do."""
