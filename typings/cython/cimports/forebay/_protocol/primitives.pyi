from forebay._protocol.primitives import UUID_SIZE as UUID_SIZE
