from forebay.model._arguments import checked_headers as checked_headers
from forebay.model._arguments import checked_partition as checked_partition
from forebay.model._arguments import checked_timestamp as checked_timestamp
from forebay.model._arguments import listed_headers as listed_headers
from forebay.model._arguments import plain_name as plain_name
