cpdef bint on_sender_thread() noexcept
