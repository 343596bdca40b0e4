from forebay.compat.kafka._calls import ALWAYS as ALWAYS
from forebay.compat.kafka._calls import DEEPEST as DEEPEST
from forebay.compat.kafka._calls import ON_FAILURE as ON_FAILURE
from forebay.compat.kafka._calls import ON_SUCCESS as ON_SUCCESS
from forebay.compat.kafka._calls import new_call as new_call
from forebay.compat.kafka._calls import record_metadata as record_metadata
