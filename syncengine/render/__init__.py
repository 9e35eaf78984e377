"""values → text for people and machines: plans, reports and diagnostics in every format. Pure; nothing prints.

`registry.py` lists every rendering; `view.py` decides once for all of them which parts of a plan are shown, and in
which order.
"""
