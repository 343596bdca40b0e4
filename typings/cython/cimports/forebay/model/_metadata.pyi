from forebay.model._metadata import DeliveryReport as DeliveryReport
from forebay.model._metadata import RecordMetadata as RecordMetadata
from forebay.model._metadata import new_metadata as new_metadata
from forebay.model._metadata import new_report as new_report
from forebay.model._metadata import next_report as next_report
