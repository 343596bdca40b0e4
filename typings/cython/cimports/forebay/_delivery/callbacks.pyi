from forebay._delivery.callbacks import DeliveryCallbacks as DeliveryCallbacks
from forebay._delivery.callbacks import copy_or_itself as copy_or_itself
from forebay._delivery.callbacks import deliver_to as deliver_to
from forebay._delivery.callbacks import hears as hears
