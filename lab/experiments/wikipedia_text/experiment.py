"""INSERT .. SELECT of Wikipedia's texts into the document's four tables: sizes and times."""

import time

from cheetah_lab import judge, show
from cheetah_tools import texts
from cheetah_lab.model import LESS, Cell, Experiment, Figure, Measure, Plot, Table, Value
from cheetah_tools import dump
from cheetah_tools.engines import INNODB

TEXT_BYTES = 60_000_000
MEMORY_BYTES = 256 << 20
SOURCE, COPY = "source", "mediawiki"
BASE = "innodb-dynamic"
SIZES = {"16K": ("innodb-16k", "cheetah-16k"), "8K": ("innodb-8k", "cheetah-8k"),
         "4K": ("innodb-4k", "cheetah-4k")}
# The document's values: seconds and bytes.
UNCOMPRESSED = (37461, 53_741_617_152)
SOURCE_BYTES = 63_472_402_432
DOCUMENT = {"16K": (33764, 38_176_555_008), "8K": (35116, 21_768_437_760),
            "4K": (38529, 20_858_273_792)}
DURABLE, SETTINGS = "durable", "settings"
VARIANTS = {DURABLE: {},
            SETTINGS: {"innodb_doublewrite": 0, "innodb_flush_log_at_trx_commit": 2,
                       "loose_cheetah_flush_log_at_trx_commit": 2,
                       "loose_rocksdb_flush_log_at_trx_commit": 2}}
SAID = {DURABLE: "with doublewrite, log synced at commit", SETTINGS: "with the document's settings"}


def table_name(engine: str) -> str:
    size = engine.rpartition("-")[2]
    return (f"text_{size.upper()}_compressed" if size in ("16k", "8k", "4k")
            else "text_16K_uncompressed")


class WikipediaText(Experiment):
    measures = [Measure("source_bytes", "size of the rows as text", "bytes"),
                Measure("articles", "articles of Wikipedia", "rows"),
                Measure("source_table_bytes", "size of the source, a table in InnoDB", "bytes"),
                Measure("bytes", "size", "bytes", LESS),
                *(Measure(f"{variant}_s", f"INSERT .. SELECT until all is written, {said}", "s",
                          LESS)
                  for variant, said in SAID.items()),
                *(Measure(f"{variant}_insert_s", f"the statement alone, {said}", "s", LESS)
                  for variant, said in SAID.items())]

    def engines(self, chosen, scale):
        return list(dict.fromkeys([*chosen, BASE, "cheetah",
                                   *(engine for pair in SIZES.values() for engine in pair)]))

    def skip(self):
        return texts.missing()

    def run(self, trial):
        trial.folder.mkdir(parents=True, exist_ok=True)
        place = trial.folder / "text.sql"
        yield Value("source_bytes", texts.write_dump(place, trial.scale.of(TEXT_BYTES, 20_000)))
        variants = ([SETTINGS] if not trial.chosen
                    else [SETTINGS, DURABLE] if trial.repeat % 2 == 0
                    else [DURABLE, SETTINGS])
        for variant in variants:
            options = {**VARIANTS[variant], **pools(trial)}
            with trial.server(MEMORY_BYTES, **options) as server:
                trial.step("load the source")
                server.sql(f"CREATE DATABASE {SOURCE}")
                dump.feed(server, SOURCE, place, "the source")
                INNODB.write_out(server, SOURCE)
                if variant == SETTINGS:
                    yield Value("articles", (server.value(f"SELECT COUNT(*) FROM {SOURCE}.text")
                                             if texts.from_wikipedia() else 0))
                    yield Value("source_table_bytes", INNODB.bytes_on_disk(server, SOURCE))
                trial.restart(server, MEMORY_BYTES, **options)
                yield from self.copy(trial, server, variant)
                if variant == SETTINGS:
                    yield Value("bytes", trial.bytes_at_rest(server, COPY))

    def copy(self, trial, server, variant):
        """Runs INSERT .. SELECT on a restarted server, from a source in memory, all clean."""
        trial.step(f"INSERT .. SELECT {SAID[variant]}")
        server.sql(f"SELECT SUM(LENGTH(old_text)) FROM {SOURCE}.text")
        name = table_name(trial.engine.key)
        create = f"CREATE TABLE {name} ({texts.COLUMNS}) {trial.engine.clause()}"
        insert = f"INSERT INTO {name} SELECT * FROM {SOURCE}.text"
        server.sql(f"CREATE DATABASE {COPY}")
        server.sql(create, COPY)
        started = time.monotonic()
        server.sql(insert, COPY)
        inserted = time.monotonic()
        trial.engine.write_out(server, COPY)
        yield Value(f"{variant}_insert_s", inserted - started)
        yield Value(f"{variant}_s", time.monotonic() - started)
        options = " ".join(f"--{name}={value}" for name, value in VARIANTS[variant].items())
        trial.did(f"mariadbd {options}   # {SAID[variant]}".replace("  ", " "))
        trial.did(create + ";")
        trial.did(insert + ";")

    def plots(self, results):
        return [Plot("sizes", "Size of the table", "bars", "", "bytes",
                     show.bars(results, {"all texts": ("bytes", None)}), caption=origin(results)),
                Plot("times", "Time to insert the texts", "bars", "settings", "seconds",
                     show.bars(results, {SAID[SETTINGS]: ("settings_s", None),
                                         SAID[DURABLE]: ("durable_s", None)}),
                     caption="INSERT .. SELECT until all pages are written out; what MyRocks "
                             "compacts later is not in it.")]

    def tables(self, results):
        shown = [measure for measure in self.measures
                 if measure.key not in ("source_bytes", "source_table_bytes", "articles")]
        every = show.table(results, "Every engine", show.columns(shown), origin(results))
        every.head.append("size by that of the text")
        engines = {results.label(engine): engine for engine in results.engines}
        for row in every.rows:
            engine = engines[row[0].text]
            row.append(show.cell(results.ratios(engine, "bytes", engine,
                                                base_measure="source_bytes"), "ratio"))
        return [every, self.as_documented(results)]

    def as_documented(self, results):
        head = ["table", "document: hours", "ratio", "GB", "ratio",
                *(f"{name}: {what}" for name in ("InnoDB", "Cheetah") for what in ("time", "size"))]
        rows = []
        for name, (seconds, size), engines in [
                ("text_16K_uncompressed", UNCOMPRESSED, (BASE, "cheetah")),
                *((f"text_{word}_compressed", DOCUMENT[word], SIZES[word]) for word in SIZES)]:
            row = [Cell(name), Cell(f"{seconds / 3600:.2f}"),
                   Cell(f"{seconds / UNCOMPRESSED[0]:.2f}"),
                   Cell(f"{size / 1e9:.1f}"), Cell(f"{size / UNCOMPRESSED[1]:.3f}")]
            for engine in engines:
                row += [show.cell(results.ratios(engine, "settings_s", BASE), "ratio"),
                        show.cell(results.ratios(engine, "bytes", BASE), "ratio")]
            rows.append(row)
        return Table("The document's four tables", head, rows,
                     "Ratios to InnoDB uncompressed, with the document's settings. Its size with "
                     "4K is the corrected one. Cheetah compresses text_16K_uncompressed, too: by "
                     "default it compresses all tables.")

    def figures(self, results):
        copied = [results.ratios(engine, "source_table_bytes", engine, base_measure="bytes")
                  for engine in (BASE, "cheetah")]
        made = [Figure("W10 source",
                       "bytes of the source, a table in InnoDB, by those of its copy in the "
                       "default format", SOURCE_BYTES / UNCOMPRESSED[1], "ratio", *copied)]
        for key, measure, what, position in (
                ("W9", "settings_s", "INSERT .. SELECT of the texts", 0),
                ("W10", "bytes", "bytes of them", 1)):
            others = show.others(
                results, lambda engine, measure=measure: results.ratios(engine, measure, BASE),
                ["cheetah", "myrocks"])
            for word, engines in SIZES.items():
                made.append(Figure(f"{key} {word}", f"{what}, KEY_BLOCK_SIZE={word[:-1]}",
                                   DOCUMENT[word][position] / UNCOMPRESSED[position], "ratio",
                                   *(results.ratios(engine, measure, BASE) for engine in engines),
                                   others=others))
        return made

    def verdicts(self, results):
        size, ratios = "bytes, KEY_BLOCK_SIZE={} by DYNAMIC".format, results.ratios
        changed = quotients(results, ("innodb-8k", "settings_s"), (BASE, "settings_s"),
                            ("innodb-8k", "durable_s"), (BASE, "durable_s"))
        written = quotients(results, (BASE, "settings_insert_s"), (BASE, "settings_s"),
                            ("innodb-8k", "settings_insert_s"), ("innodb-8k", "settings_s"))
        by_least = results.by_smallest("cheetah", "bytes", [first for first, _ in SIZES.values()])
        return judge.each(self.about["claims"], [
            ("bytes_8k", size(8), ratios("innodb-8k", "bytes", BASE), 0, 0.5),
            ("bytes_4k", size(4), ratios("innodb-4k", "bytes", BASE), 0, 0.5),
            ("bytes_16k", size(16), ratios("innodb-16k", "bytes", BASE), 0, 0.8),
            ("time", "KEY_BLOCK_SIZE=8 by DYNAMIC", ratios("innodb-8k", "settings_s", BASE), 0,
             judge.NO_LONGER),
            ("settings", "that ratio with the settings, by that without", changed,
             1 / judge.NO_LONGER, judge.NO_LONGER),
            ("dirty", "share of the time until the statement ends, DYNAMIC by KEY_BLOCK_SIZE=8",
             written, 0, 1.0),
            ("cheetah_time", "Cheetah by InnoDB DYNAMIC", ratios("cheetah", "settings_s", BASE), 0,
             judge.NO_LONGER),
            ("cheetah_bytes", "bytes, Cheetah by the smallest of InnoDB", by_least, 0, 1.0)])


def pools(trial) -> dict:
    """Returns options that divide the memory between the source's InnoDB and another engine."""
    if trial.family == "InnoDB":
        return {}
    half, whole = (trial.engine.server_options(MEMORY_BYTES // 2),
                   trial.engine.server_options(MEMORY_BYTES))
    return {"innodb_buffer_pool_size": MEMORY_BYTES // 2,
            "loose_cheetah_buffer_pool_size": MEMORY_BYTES // 2,
            **{name: value for name, value in half.items() if value != whole[name]}}


def quotients(results, *places) -> list:
    return [a / b / (c / d)
            for a, b, c, d in results.together(*((engine, measure, None)
                                                 for engine, measure in places))]


def origin(results) -> str:
    articles = max((value for engine in results.engines
                    for value in results.values(engine, "articles")), default=0)
    return (f"Texts: {articles:,.0f} articles of the English Wikipedia." if articles
            else "Texts: files of the MariaDB source package, not Wikipedia's articles.")
