from forebay._network.inflight import answer_to as answer_to
