from forebay._network.channel cimport Channel


cpdef serve(Channel channel, double now)
