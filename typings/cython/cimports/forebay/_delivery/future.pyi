from forebay._delivery.future import new_future as new_future
from forebay._delivery.future import wait_for as wait_for
