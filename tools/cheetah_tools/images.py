"""`make crash IMAGES=n`: explores n more images of power cuts, in the simulation of
crates/cheetah/tests/crash.rs; it continues where the last run stopped.

Seeds are divided into chunks, numbered from 0. The ledger has a line for each finished chunk,
whatever its commit. The next chunk is the first without a good line: failed ones run again."""

import argparse
import fcntl
import json
import os
import re
import subprocess
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

from .build import commit_of_project
from .paths import COMMON, PROJECT, TARGET, show
from .say import Failure, step

LEDGER = COMMON / "crash-images.tsv"
HEAD = ["date", "commit", "first_seed", "seeds", "images", "failures"]
CHUNK_SEEDS = 20
RESULT = re.compile(r"^(\d+) crash images at \d+ moments of (\d+) workloads from seed (\d+) in "
                    r"\d+ s: all good$", re.M)
# The lines of a failure: the seed, the moment of the power cut and the problem, the command.
TOLD = re.compile(r"^panic while exploring seed .*|^(?:seed \d+: )?plan seed .*\n.*"
                  r"|^repeat with: .*", re.M)
LOG_LINES = 40


def main(arguments: list) -> int:
    """Runs the command; returns 1 if an image was wrong."""
    parser = argparse.ArgumentParser(prog="images", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--images", type=int, required=True, help="stop after so many more")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    choice = parser.parse_args(arguments)
    if min(choice.images, choice.jobs) < 1:
        raise Failure("IMAGES and JOBS are numbers from 1 on")
    program, commit = build(), commit_of_project()
    with Ledger(LEDGER) as ledger:
        step(f"crash images at {commit}, in {show(LEDGER)}: {ledger.images} so far")
        return run(ledger, commit, choice.images, choice.jobs, Simulation(program))


class Ledger:
    """The lines of finished chunks, in a file that only one run has open."""

    def __init__(self, path: Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = open(path, "a+", encoding="ascii")   # closed by `with`
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.file.close()
            raise Failure(f"{show(path)}: another run of crash images has it") from None
        rows = [line.split("\t") for line in self._whole_lines()[1:]]
        good = [row for row in rows if row[5] == "0"]
        self.images = sum(int(row[4]) for row in good)
        self.good = {(int(row[2]) - 1) // CHUNK_SEEDS for row in good}
        if self.file.tell() == 0:
            self._append(HEAD)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def add(self, commit: str, no: int, images: int, failures: int) -> None:
        date = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
        self._append([date, commit, no * CHUNK_SEEDS + 1, CHUNK_SEEDS, images, failures])
        if not failures:
            self.good.add(no)
            self.images += images

    def chunks(self):
        """Yields the numbers of chunks without a good line, endlessly."""
        no = 0
        while True:
            if no not in self.good:
                yield no
            no += 1

    def _whole_lines(self) -> list:
        """Returns the lines; removes an incomplete last line, which a kill may leave."""
        self.file.seek(0)
        text = self.file.read()
        whole = text[:text.rfind("\n") + 1]
        if whole != text:
            step(f"{show(Path(self.file.name))}: its last line was cut short and is left out")
            self.file.seek(self.file.truncate(len(whole)))
        return whole.splitlines()

    def _append(self, cells: list) -> None:
        self.file.write("\t".join(map(str, cells)) + "\n")
        self.file.flush()


class Simulation:
    def __init__(self, program: Path):
        self.program, self.running = program, set()

    def explore(self, no: int) -> tuple:
        """Runs one chunk; returns its images and "", or None and its output."""
        first = no * CHUNK_SEEDS + 1
        settings = {"CHEETAH_CRASH_SEED": str(first), "CHEETAH_CRASH_SEEDS": str(CHUNK_SEEDS),
                    "CHEETAH_CRASH_IMAGES": str(10**12), "CHEETAH_CRASH_THREADS": "1"}
        process = subprocess.Popen([self.program, "--nocapture"], cwd=PROJECT,
                                   env={**os.environ, **settings}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   errors="replace")
        self.running.add(process)
        text, _ = process.communicate()
        self.running.discard(process)
        return outcome(first, process.returncode, text)

    def stop(self) -> None:
        for process in list(self.running):
            process.kill()


def run(ledger: Ledger, commit: str, wanted: int, jobs: int, simulation) -> int:
    """Runs chunks, `jobs` at a time, until `wanted` images were good or a chunk failed."""
    chunks, begun, before, done = ledger.chunks(), time.monotonic(), ledger.images, []
    failed, running = [], {}

    def goes_on() -> bool:
        return ledger.images - before < wanted and not failed

    with ThreadPoolExecutor(jobs) as pool:
        try:
            while running or goes_on():
                while len(running) < jobs and goes_on():
                    no = next(chunks)
                    running[pool.submit(simulation.explore, no)] = no
                for over in wait(running, return_when=FIRST_COMPLETED).done:
                    no, (images, said) = running.pop(over), over.result()
                    ledger.add(commit, no, images or 0, int(images is None))
                    done.append(no)
                    failed += [said] if images is None else []
        except BaseException:   # also on Ctrl-C
            simulation.stop()
            raise
    images, seconds = ledger.images - before, max(time.monotonic() - begun, 0.001)
    print("\n".join(failed), end="\n" if failed else "")
    print(f"crash images: {images} at {commit} from seeds {min(done) * CHUNK_SEEDS + 1} to "
          f"{(max(done) + 1) * CHUNK_SEEDS} in {seconds:.0f} s ({images / seconds:.0f}/s), "
          f"{len(failed)} lost or wrong; {ledger.images} in all")
    return 1 if failed else 0


def outcome(first: int, status: int, text: str) -> tuple:
    """Returns the outcome of a chunk's process: images and "", or None and its output."""
    found = RESULT.search(text)
    if status == 0 and found and found.groups()[1:] == (str(CHUNK_SEEDS), str(first)):
        return int(found[1]), ""
    told = TOLD.findall(text)[:LOG_LINES] or text.strip().splitlines()[-LOG_LINES:]
    return None, "\n".join([f"FAILED from seed {first}, exit status {status}:", *told])


def build() -> Path:
    """Builds the test's program, optimised and with assertions; returns its path."""
    words = ["cargo", "test", "--quiet", "--profile=images", "-p", "cheetah", "--test", "crash",
             "--no-run", "--message-format=json-render-diagnostics"]
    step("compiling the simulation")
    done = subprocess.run(words, cwd=PROJECT, env={**os.environ, "CARGO_TARGET_DIR": str(TARGET)},
                          stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Failure("cargo could not build the test `crash` (messages above)")
    built = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return Path(next(each["executable"] for each in built
                     if each.get("executable") and each["target"]["name"] == "crash"))
