# Cheetah's commands. `make` lists them; each does its own set-up (MariaDB is unpacked under var/, nothing is installed).
CHEETAH = python3 tools/cheetah.py

help:
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

setup: ; @$(CHEETAH) setup     ## download and unpack the private MariaDB (done by the others when needed)
build: ; @$(CHEETAH) build     ## build/ha_cheetah.so
clean: ; @$(CHEETAH) clean     ## delete what was built

.PHONY: help setup build clean
