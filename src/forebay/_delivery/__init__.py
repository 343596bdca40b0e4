"""What became of a record."""
