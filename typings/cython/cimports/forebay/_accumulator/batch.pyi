from forebay._accumulator.batch import new_batch as new_batch
