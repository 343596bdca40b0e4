from forebay._protocol.framing import framed as framed
