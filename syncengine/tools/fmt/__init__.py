"""text of a manifest → the same in its canonical layout: what lines are, the order of keys, the round trip."""
