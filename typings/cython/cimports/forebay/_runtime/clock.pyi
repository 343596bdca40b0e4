from forebay._runtime.clock import monotonic_ms as monotonic_ms
