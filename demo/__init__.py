"""The main job on real data, checked row by row."""
