from forebay._accumulator.partitioner import key_partition as key_partition
