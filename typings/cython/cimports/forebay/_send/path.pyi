from forebay._send.path import FORKED as FORKED
from forebay._send.path import OPEN as OPEN
from forebay._send.path import RETURN as RETURN
from forebay._send.path import WAIT as WAIT
