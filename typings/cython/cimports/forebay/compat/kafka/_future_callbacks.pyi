from forebay.compat.kafka._future_callbacks import ALWAYS as ALWAYS
from forebay.compat.kafka._future_callbacks import DEEPEST as DEEPEST
from forebay.compat.kafka._future_callbacks import ON_FAILURE as ON_FAILURE
from forebay.compat.kafka._future_callbacks import ON_SUCCESS as ON_SUCCESS
from forebay.compat.kafka._future_callbacks import new_call as new_call
from forebay.compat.kafka._future_callbacks import record_metadata as record_metadata
