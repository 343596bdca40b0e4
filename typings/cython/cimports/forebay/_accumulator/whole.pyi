from forebay._accumulator.whole import append_whole as append_whole
