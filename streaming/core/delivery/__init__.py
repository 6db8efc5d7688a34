"""What a consumer lacks, from where it is sent, and what it does with it."""
