from forebay.producer.path import FORKED as FORKED
from forebay.producer.path import OPEN as OPEN
from forebay.producer.path import RETURN as RETURN
from forebay.producer.path import WAIT as WAIT
