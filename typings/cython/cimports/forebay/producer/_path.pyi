from forebay.producer._path import FORKED as FORKED
from forebay.producer._path import OPEN as OPEN
from forebay.producer._path import RETURN as RETURN
from forebay.producer._path import WAIT as WAIT
