from forebay._accumulator import states as states
