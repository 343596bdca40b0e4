from forebay._sender.produce import match as match
