"""Import the whole program, so that a process that is forked from this one has it."""

import gc
import importlib
import pkgutil

import syncengine

LAZY = (
    *("sqlalchemy.dialects.sqlite", "pydantic.type_adapter"),
    *("pydantic.dataclasses", "uvicorn.lifespan.off", "uvicorn.loops.asyncio"),
)
"""Modules that packages import once they need them."""

for _name in LAZY:
    importlib.import_module(_name)

for _module in pkgutil.walk_packages(syncengine.__path__, "syncengine."):
    if not _module.name.endswith("__main__"):
        importlib.import_module(_module.name)

gc.collect()
gc.freeze()
