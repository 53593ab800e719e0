"""Reads and writes differences.tsv: known differences of Cheetah and InnoDB, with reasons.

The list is exact: an unlisted difference is a failure, and so is a line whose case no longer
differs. The list should shrink until it holds only deliberate differences."""

from pathlib import Path

PLACE = Path(__file__).resolve().parent / "differences.tsv"


class Differences:
    def __init__(self, suite: str, place: Path = PLACE):
        self.suite, self.place = suite, place
        self.lines = place.read_text().splitlines()
        self.reasons = {line.split("\t")[1] for line in self.lines if line.startswith("reason\t")}
        self.listed = dict(line.split("\t")[1:3] for line in self.lines
                           if line.startswith(suite + "\t"))

    def judge(self, found: dict, whole: set) -> dict:
        """Returns what is wrong with `found` (case -> reason, or ""). `whole`: the cases run."""
        wrong = {}
        for case, reason in found.items():
            if case not in self.listed:
                wrong[case] = f"differs and is not listed (reason would be: {reason or 'unknown'})"
            elif self.listed[case] not in self.reasons:
                wrong[case] = (f"is listed with the reason {self.listed[case]!r}, which is "
                               "explained nowhere")
        for case in self.listed:
            if case in whole and case not in found:
                wrong[case] = "is listed, but differs no more: take its line out (--write does)"
        return wrong

    def replace(self, found: dict) -> None:
        """Rewrites the suite's lines. A reason by hand stays where no other one is known."""
        kept = {case: reason or self.listed.get(case, "") for case, reason in found.items()}
        kept = {case: reason for case, reason in kept.items() if reason}
        self.lines = [line for line in self.lines if not line.startswith(self.suite + "\t")]
        self.lines += [f"{self.suite}\t{case}\t{reason}" for case, reason in kept.items()]
        self.place.write_text("\n".join(self.lines) + "\n")
        self.listed = kept
