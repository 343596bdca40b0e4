from forebay._accumulator.topic import change_of as change_of
