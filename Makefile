# Cheetah's commands. `make` lists them; each does its own set-up (MariaDB is unpacked under var/, nothing is installed).
CHEETAH = python3 tools/cheetah.py

help:
	@sed -n 's/^\([a-z-]*\) *:.*## /  make \1\t/p' Makefile | expand -t 20

setup: ; @$(CHEETAH) setup     ## download and unpack the private MariaDB (done by the others when needed)
build: ; @$(CHEETAH) build     ## build/ha_cheetah.so
up:    ; @$(CHEETAH) up        ## start a private server under var/run
sql:   ; @$(CHEETAH) sql       ## a client of that server; reads statements from standard input too
down:  ; @$(CHEETAH) down      ## stop it
differential: build ; @python3 tests/differential/run.py $(ARGS)   ## random statements beside InnoDB (ARGS="--seed 7")
clean: ; @$(CHEETAH) clean     ## delete what was built

.PHONY: help setup build up sql down differential clean
