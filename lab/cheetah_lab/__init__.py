"""The lab: experiments that measure storage engines side by side, and the pages that show them.

Many files: small modules in layers, in the order of this list:

model        what an experiment is, what it yields, and what it shows: plain data, no I/O
numbers      formats values with readable units and with their spread
results      the values of a run, by experiment, engine and measure; medians, spreads, paired ratios
judge        derives verdicts from the ratios of all repeats
engines      the engines that are compared, and the table options of each
show         converts values to figures, series, and rows of tables
counters     the engines' own counters of the pages that they read
cells        sysbench's workloads with numbers of connections, as several experiments measure them
trial        one engine in one repeat of one experiment: private servers with equal memory
room         checks before a run that the disk has enough space
store        a run on disk
machine      describes what a run is measured on: machine, versions, hashes of plugin and code
inputs/      generators of rows
experiments  finds and loads the experiments (../experiments)
progress     shows the progress of a run
run          plans the trials of a run, saves each as it ends, and continues a stopped run
report/      HTML and JSON of a run, and its plots
sections     prepares the trials of a run for its page
cli          the commands
bench        `make bench`: named sets of experiments, and their report as text

A module imports only modules above it. Experiments use the first nine, inputs/ and cheetah_tools.
"""
