from forebay._delivery.added import added_callback as added_callback
from forebay._delivery.added import put_added as put_added
from forebay._delivery.added import repeat_added as repeat_added
