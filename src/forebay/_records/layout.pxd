# Numbers of layout.py that compiled code needs, as constants.  layout.py says what they are; a test compares the two.

cdef enum:
    SIZE_AT = 8
    LOG_OVERHEAD = 12
    MAGIC_AT = 16
    MAGIC_V2 = 2
    V2_LEADER_EPOCH_AT = 12
    V2_CRC_AT = 17
    V2_ATTRIBUTES_AT = 21
    V2_LAST_OFFSET_DELTA_AT = 23
    V2_BASE_TIMESTAMP_AT = 27
    V2_MAX_TIMESTAMP_AT = 35
    V2_PRODUCER_ID_AT = 43
    V2_PRODUCER_EPOCH_AT = 51
    V2_BASE_SEQUENCE_AT = 53
    V2_COUNT_AT = 57
    BATCH_OVERHEAD = 61
    MAX_RECORD_OVERHEAD = 21
    TRANSACTIONAL_BIT = 16
    CODEC_ZSTD = 4
    MAX_SEQUENCE = 2147483647
