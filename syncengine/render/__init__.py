"""values → text for people and machines: plans, reports and diagnostics in every format. Pure; nothing prints.

`registry.py` lists every rendering; `view.py` decides once what a plan says and in which order.
"""
