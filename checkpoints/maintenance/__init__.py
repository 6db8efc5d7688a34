"""What is done with the files of a state: compaction, removal, pins, backup."""
