from forebay._accumulator.single_batch import append_whole as append_whole
