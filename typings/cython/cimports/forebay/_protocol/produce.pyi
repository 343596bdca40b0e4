from forebay._protocol.produce import encode_produce as encode_produce
