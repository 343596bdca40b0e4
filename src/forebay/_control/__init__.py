"""What a producer's owner asks the cluster for besides producing: see ``forebay.control``."""
