from forebay._accumulator.chunks import chunk_size as chunk_size
from forebay._accumulator.chunks import grow as grow
from forebay._accumulator.chunks import shrunk as shrunk
from forebay._accumulator.chunks import usable as usable
