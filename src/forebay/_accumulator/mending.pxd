from forebay._accumulator.schedule cimport BatchSchedule
from forebay._gate cimport Gate

cpdef void mend(BatchSchedule schedule, list batches, double now, Gate gate)
