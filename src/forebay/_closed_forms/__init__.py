"""Closed forms for what settings of a producer give; they import nothing of it.

``estimate`` is the way in; ``wording`` writes their numbers for people.
"""
