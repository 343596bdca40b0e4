from forebay._protocol.versions import FIRST_PRODUCE_BY_ID as FIRST_PRODUCE_BY_ID
from forebay._protocol.versions import NEWEST_PRODUCE as NEWEST_PRODUCE
