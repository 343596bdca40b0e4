from forebay._delivery.callback_thread import on_sender_thread as on_sender_thread
from forebay._delivery.callback_thread import report_lost as report_lost
