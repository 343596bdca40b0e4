from forebay._delivery.hearing import hear as hear
