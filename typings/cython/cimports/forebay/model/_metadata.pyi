from forebay.model._metadata import RecordMetadata as RecordMetadata
from forebay.model._metadata import new_metadata as new_metadata
