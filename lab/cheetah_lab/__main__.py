"""Runs the lab's commands: `python -m cheetah_lab`."""

from .cli import main

main()
