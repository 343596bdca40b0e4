"""A release: wheels are built, tried where there is no compiler, and their dependencies looked up for each platform."""
