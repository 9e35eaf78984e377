"""`python -m syncengine`."""

from syncengine.cli import main

main()
