from forebay._runtime.this_thread import count_of_thread as count_of_thread
from forebay._runtime.this_thread import count_on_thread as count_on_thread
from forebay._runtime.this_thread import mark_thread as mark_thread
from forebay._runtime.this_thread import thread_is_marked as thread_is_marked
