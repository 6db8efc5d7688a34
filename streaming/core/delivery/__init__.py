"""What a consumer lacks, what it is sent, and what it does with it."""
