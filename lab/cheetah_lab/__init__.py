"""The lab: experiments that measure storage engines side by side, and the pages that show it.

Many files: small layers, in the order of this list.

model        what an experiment is, what it yields, and what it shows: plain data, no I/O
numbers      how values are written: with a unit that people read, and with their spread
results      the values of a run, by experiment, engine and measure; medians, spreads, paired ratios
judge        from ratios of all repeats to a verdict
engines      the engines that are compared, and the words that declare their tables
show         from values to figures, series, and rows of tables
counters     what engines say of the pages that they read
cells        sysbench's workloads with numbers of connections, as several experiments measure them
trial        one engine in one repeat of one experiment: private servers with equal memory
room         whether the disk has room, before anything begins
store        a run on disk
machine      what a run is measured on: machine, versions, hashes of plugin and code
inputs/      generators of rows
experiments  finds and loads the experiments (../experiments)
progress     what a person sees of a run as it goes
run          which trials a run has, in which order; keeps each as it ends, goes on where it stopped
report/      HTML and JSON of a run, its plots
sections     from the trials of a run to what its page shows
cli          the commands
bench        `make bench`: experiments by the names of sets, and their report as text

A module imports from those above it. Experiments use the first nine, inputs/, and the project's
own tools (cheetah_tools).
"""
