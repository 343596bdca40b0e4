from forebay._runtime.clock_source import monotonic_ns as monotonic_ns
from forebay._runtime.clock_source import ticks as ticks
from forebay._runtime.clock_source import ticks_are_steady as ticks_are_steady
from forebay._runtime.clock_source import wall_ns as wall_ns
