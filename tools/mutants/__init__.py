"""Mutants: how sharp the tests are, and what only the slow part of them finds: ``python -m tools.mutants``.

A mutant is the package with one small change in one line.  The tests that reach the line have to fail.  Seeded mutants
of the core, the network, transactions and the Spark sink run interpreted, each against the tests that reach its line:
first those of ``make test``, then the rest.

Two kept tools were judged and not taken.  mutmut leaves nearly all decorated functions alone, and those of the hot
modules have Cython's decorators.  cosmic-ray changes the working tree in place and has one test command for all
mutants; its operators delete no statement and change no returned value, and know nothing of code of one form.
coverage.py tells which test reaches which line.
"""
