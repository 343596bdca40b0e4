from forebay._runtime.mutex import HAS_GIL as HAS_GIL
from forebay._runtime.mutex import Mutex as Mutex
from forebay._runtime.mutex import acquire as acquire
from forebay._runtime.mutex import give_way as give_way
from forebay._runtime.mutex import release as release
from forebay._runtime.mutex import thread_ident as thread_ident
