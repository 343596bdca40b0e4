from forebay.model.metadata import RecordMetadata as RecordMetadata
from forebay.model.metadata import new_metadata as new_metadata
