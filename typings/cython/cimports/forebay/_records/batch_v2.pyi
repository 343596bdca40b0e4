from forebay._records.batch_v2 import encode_headers as encode_headers
from forebay._records.batch_v2 import fill_header as fill_header
from forebay._records.batch_v2 import put_large_record as put_large_record
from forebay._records.batch_v2 import put_record as put_record
from forebay._records.batch_v2 import record_body_size as record_body_size
from forebay._records.batch_v2 import record_size as record_size
from forebay._records.batch_v2 import with_plain_headers as with_plain_headers
