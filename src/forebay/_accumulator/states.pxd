# The states of a queue and of a batch, as words that compiled code compares.  Twin: states.py, which has the tables.

cdef enum:                 # PartitionQueue.place
    IDLE = 0
    ANNOUNCED = 1
    WATCHED = 2
    PARKED = 3

cdef enum:                 # ProducerBatch.life
    OPEN = 0
    FULL = 1
    LEFT = 2
    CLOSING = 3
    CLOSED = 4
    ABANDONED = 5

cdef enum:                 # ProducerBatch.final_state
    NOT_FINAL = 0
    SUCCEEDED = 1
    FAILED = 2
    ABORTED = 3
    SPLIT = 4

cdef enum:                 # what a write answers in place of a size
    NO_ROOM = 0
    CHUNK_FULL = -1
    CHUNK_SMALL = -3

cdef enum:                 # what an append answers
    WAIT = 0
    APPENDED = 1
    MADE_FULL = 2
    BEGUN = 4
    WORTH_WAKING = 6

cdef enum:                 # PoolWaiter.state
    QUEUED = 0
    GRANTED = 1
    ENDED = 2

cdef enum:                 # PartitionQueue.line, where it is no node's id
    NO_LEADER = -1
    NO_LINE = -2

cdef enum:                 # a partition that is not chosen yet
    STICKY = -1
