"""Render plans, reports and diagnostics as text for people and for machines. Pure; nothing here prints.

`registry.py` lists every format; `view.py` decides for all of them which parts of a plan are shown, and in which order.
"""
