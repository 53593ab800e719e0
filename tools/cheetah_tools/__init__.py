"""Build, run and test Cheetah against a private MariaDB.

Nothing outside the project folder is touched.

Many files: one for each command of cheetah.py (its table names them), and below these what several
share.

paths, say       where things are, and what is said
apt, setup       packages, and the private server that is made of them
environment      libraries for Python; `lock` pins them
server, cgroup, page_cache, stuck   a server, its memory, and what it hangs on
engines, dump, sysbench, texts, formatdata, points, device   what is measured, and with what
ledger           writers, and what a crash must leave of their work
lab              hands over to the lab, which `make lab` and `make bench` are
"""
