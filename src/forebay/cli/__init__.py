"""The command ``forebay``.  Begin with ``commands``, which has its subcommands.

These modules parse and print.  The package does the work, as it does for any other program.  They run on the main
thread; counts of outcomes are made on the sender's.
"""
