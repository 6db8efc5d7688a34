"""What each consumer has, what it lacks, and when it will have it."""
