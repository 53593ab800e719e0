"""`make lab` and `make bench`: starts the lab in the environment of `environment.py`."""

from . import environment


def main(arguments: list) -> None:
    """Runs `make lab`. Does not return: the lab's exit status and signals are its own."""
    environment.hand_over([str(environment.ensure()), "-m", "cheetah_lab", *arguments])


def bench(arguments: list) -> None:
    """`make bench`: runs sets of the lab's experiments with a report as text. Does not return."""
    environment.hand_over([str(environment.ensure()), "-m", "cheetah_lab.bench", *arguments])
