from forebay.compat._librdkafka_messages import new_message as new_message
