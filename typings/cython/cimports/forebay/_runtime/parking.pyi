from forebay._runtime.parking import Parking as Parking
from forebay._runtime.parking import asleep_in as asleep_in
from forebay._runtime.parking import next_turn as next_turn
from forebay._runtime.parking import park as park
from forebay._runtime.parking import turn_of as turn_of
