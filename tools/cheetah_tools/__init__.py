"""Build, run and test Cheetah against a private MariaDB.

Nothing outside the project folder is touched.

Many files: one for each command of cheetah.py (its table names them), and these shared modules:

paths, say       locations of files; messages
apt, setup       packages, and the private server that consists of them
environment      Python libraries, which `lock` pins; starts pytest, and the lab and its `bench`
server, cgroup, page_cache, stuck   a server, its memory, and reports of hanging processes
engines, dump, sysbench, texts, formatdata, points, device   the tools of measurements
ledger           writers, and the check of their rows after a crash
"""
