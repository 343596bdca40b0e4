"""The command ``forebay``: parsing and printing; the work is done by the package like in anybody's program."""
