from forebay._accumulator.topic cimport PartitionQueue
from forebay._accumulator.accumulator cimport RecordAccumulator
from forebay._accumulator.schedule cimport BatchSchedule
from forebay._accumulator.batch cimport ProducerBatch
from forebay._network.client cimport NetworkClient
from forebay._network.inflight cimport ClientRequest, ClientResponse
from forebay._protocol.produce_response cimport PartitionResponse, ProduceResponse
from forebay._sender.draining cimport Draining
from forebay._sender.outcomes cimport OutcomeHandler, RequestSensors
from forebay._sender.produce cimport ProduceCall
from forebay._accumulator.schedule cimport ReadyNodes
from forebay._transactions.manager cimport TransactionManager


# Everything belongs to the sender's thread, except closing and forced, which any thread sets,
# purges, to which any thread appends (_sender/purging.py), and warm_ups, which any thread also shortens.
cdef class Sender:
    cdef readonly RecordAccumulator accumulator
    cdef BatchSchedule schedule
    cdef NetworkClient client
    cdef readonly object metadata
    cdef TransactionManager transactions
    cdef object metrics
    cdef RequestSensors sensors
    cdef double next_roll
    cdef object followed
    cdef int timeout_ms
    cdef readonly Draining draining
    cdef readonly object requests
    cdef object dialog                   # of a transactional producer
    cdef object producer_ids
    cdef public object telemetry         # of a cluster that takes metrics, else None
    cdef object log
    cdef object answered                 # on_produce
    cdef readonly OutcomeHandler outcomes
    cdef int acks
    cdef double delivery_timeout_ms
    cdef bint guarantee_order
    cdef long long cluster_version
    cdef readonly dict in_flight
    cdef double next_in_flight_expiry
    cdef readonly bint closing
    cdef readonly bint forced
    cdef readonly list purges
    cdef readonly list warm_ups
    cdef bint unfinished_turn                  # a turn began to drain and did not come to its wait
    cpdef run_once(self, double now)
    cdef _begin_turn(self, double now)
    cpdef double _prepare(self, double now) except? -2
    cdef double send_ready(self, double now) except? -2
    cdef bint _send_all(self)
    cdef double _send_to(self, ReadyNodes found, double now) except? -2
    cdef double _wait_until(self, double now, double delay) except? -2
    cdef _follow_metadata(self)
    cdef send(self, int node_id, list batches, double now, bint prompt)
    cdef _note_in_flight(self, int node_id, list batches)
    cdef _end_call(self, ProduceCall call, double now)
    cdef _apply_response(self, ProduceCall call, ClientResponse response, double now)
    cpdef complete(self, ProducerBatch batch, PartitionResponse answer, object error, double now)
    cdef _apply(self, ProduceCall call, ProduceResponse body, double now)
    cpdef _expire(self, double now)
