from forebay._delivery.metadata import RecordMetadata as RecordMetadata
from forebay._delivery.metadata import new_metadata as new_metadata
