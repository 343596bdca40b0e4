cpdef bint on_sender_thread() noexcept
cpdef void report_lost(str topic, int partition, long long base_offset, long long at, long long count) noexcept
