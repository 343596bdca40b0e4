from forebay._delivery.split import split_result as split_result
