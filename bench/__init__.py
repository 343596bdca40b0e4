"""Benches: forebay and its peers on the same work, and what single steps of forebay cost."""
