from forebay._runtime.piece import piece as piece
from forebay._runtime.piece import piece_at as piece_at
