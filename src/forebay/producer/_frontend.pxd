# For compiled front ends: see _frontend.py.
from forebay._accumulator.batch cimport ProducerBatch
from forebay._accumulator.partitioner cimport PartitionRandom
from forebay._accumulator.single_batch cimport append_whole
from forebay._accumulator.states cimport APPENDED
from forebay._accumulator.topic cimport TopicState
from forebay._delivery.added cimport added_callback, put_added, repeat_added
from forebay._delivery.callbacks cimport AddedCallback, CompiledCallback, alike
from forebay._delivery.future cimport RecordFuture, new_future
from forebay._delivery.hearing cimport hear
from forebay._delivery.result cimport DONE, BatchResult, process_number
from forebay._records.batch_v2 cimport encode_headers, record_body_size, record_size, with_plain_headers
from forebay._records.layout cimport BATCH_OVERHEAD, MAX_RECORD_OVERHEAD
from forebay._runtime.clock cimport Clock
from forebay._runtime.memory cimport is_unshared, put_item
from forebay._runtime.mutex cimport Mutex, acquire, release
from forebay._runtime.primitives cimport MAX_INT32
from forebay._runtime.primitives cimport (
    RecordPointer,
    RecordView,
    SectionRoom,
    bytes_pointer,
    murmur2,
    record_view,
    section_pointer,
    utf8_size,
    view_of,
)
