from forebay._delivery.sender_lock import check_wait as check_wait
from forebay._delivery.sender_lock import may_wait as may_wait
