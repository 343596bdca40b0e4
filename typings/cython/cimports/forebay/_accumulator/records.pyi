from forebay._accumulator.records import new_records as new_records
