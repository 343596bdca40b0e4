"""What a command says of its work: progress while it runs, what became of its records, their latencies."""
