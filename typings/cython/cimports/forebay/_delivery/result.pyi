from forebay._delivery.result import COMPLETING as COMPLETING
from forebay._delivery.result import DONE as DONE
from forebay._delivery.result import PENDING as PENDING
from forebay._delivery.result import new_result as new_result
from forebay._delivery.result import part_with as part_with
