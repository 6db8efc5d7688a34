"""What is counted of each replica and table: changes, faults and conflicts, under NDB's names."""
