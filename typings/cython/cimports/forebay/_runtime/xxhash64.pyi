from forebay._runtime.xxhash64 import xxhash64 as xxhash64
