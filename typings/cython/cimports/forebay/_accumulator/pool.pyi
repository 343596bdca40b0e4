from forebay._accumulator.pool import Buffer as Buffer
from forebay._accumulator.pool import adopt as adopt
