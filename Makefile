# Cheetah's commands. `make` lists them. Each does its own set-up: MariaDB is unpacked under var/,
# and only build tools that are missing are installed.
#
# `##@` begins a group of the list. `##` says what the target below it does.
CHEETAH = python3 tools/cheetah.py

# The server's series: SERVER=11.8 for another one than 10.11.
ifdef SERVER
export CHEETAH_SERVER = $(SERVER)
endif

help:
	@awk '/^##@ / { print "\n" substr($$0, 5) ":" } \
	     /^## / { text[lines++] = substr($$0, 4) } \
	     /^[a-z-]+:/ && lines { split($$0, name, ":"); \
	         for (i = 0; i < lines; i++) \
	             printf "  %-17s %s\n", i ? "" : "make " name[1], text[i]; \
	         lines = 0 }' Makefile

##@ Build and run

## download and unpack the private MariaDB (the others do it when needed)
setup: ; @$(CHEETAH) setup
## build/ha_cheetah.so
build: ; @$(CHEETAH) build
## the main job: real text in InnoDB and Cheetah, then kill -9 (DUMP=file.sql.gz)
demo:  ; @$(CHEETAH) demo $(if $(DUMP),--dump "$(DUMP)")
## start a private server under var/run
up:    ; @$(CHEETAH) up
## a client of that server; reads statements from standard input too
sql:   ; @$(CHEETAH) sql
## stop it
down:  ; @$(CHEETAH) down
## build/mariadb-plugin-cheetah_*.deb
deb:   ; @$(CHEETAH) deb
## into the installed server, if it is of the very same version
install: ; @$(CHEETAH) install
## delete what was built
clean: ; @$(CHEETAH) clean

##@ Tests

## every check and test; the last line is the sum
## (STEP_MINUTES=60 on a busy machine)
test: setup
	@$(CHEETAH) test $(if $(STEP_MINUTES),--step-minutes $(STEP_MINUTES))
## the scripts of tests/sql, on InnoDB and Cheetah (ARGS="NAME ..")
sqltests: build ; @$(CHEETAH) pytest tests/sql $(ARGS)
## kills in DDL and under load, damaged files, full disk, memory
## (ARGS="--large", "tpcc --rounds 50")
servertests: build ; @$(CHEETAH) pytest tests/server $(ARGS)
## Hermitage, random histories and interleavings beside InnoDB
## (LONG=1: 200 histories of 10,000)
isolation: build ; @$(CHEETAH) pytest tests/isolation/test_engines.py -s $(LARGE_IF_LONG) $(ARGS)
## random statements beside InnoDB (ARGS="--seed 7")
differential: build ; @python3 tests/differential/run.py $(ARGS)
## applications and tools beside InnoDB: MediaWiki, WordPress, Django, ..
## (LONG=1: more of each; ARGS="mediawiki")
apps: build ; @$(CHEETAH) pytest tests/apps $(LARGE_IF_LONG) $(ARGS)
## MariaDB's own suites, on InnoDB and Cheetah
suites: build ; @$(CHEETAH) suites $(ARGS)
## load the data sets beside the project, compare checksums
check-data: build ; @$(CHEETAH) pytest tests/server/test_data_sets.py -s --large
## a table of 5 GB in a pool of 64 MB: is the memory limit kept?
big: build ; @$(CHEETAH) pytest tests/server/test_pool_memory.py -s --large
## install, upgrade, remove the package on a small Debian (needs root;
## ARGS="NAME ..")
upgrades: build ; @$(CHEETAH) pytest tests/upgrades $(ARGS)
## the lab's own tests (ARGS="test_page")
labtests: build ; @$(CHEETAH) pytest tests/lab $(ARGS)

LARGE_IF_LONG = $(if $(LONG),--large)

##@ Tests that run for hours (kills and soak: SEED=s repeats one)

## kill -9 a loaded server ROUNDS times (LARGE=1: also with data of 20 times the
## cache); IMAGES=n: so many images of power cuts in the simulation, JOBS at a
## time, goes on where it stopped
ifdef IMAGES
crash: ; @$(CHEETAH) images --images $(IMAGES) --jobs $(or $(JOBS),1)
else
crash: build
	@$(CHEETAH) pytest tests/server/test_crash.py tests/server/test_transfers.py -s \
		--rounds $(or $(ROUNDS),8) $(SEEDED) $(if $(LARGE),--large)
endif
## rounds of everything, drawn at random: kills, DDL, backups, statements beside
## InnoDB; JOBS at a time, for HOURS of rounds, goes on where it stopped
soak: build ; @$(CHEETAH) soak --hours $(or $(HOURS),1) $(SEEDED) --jobs $(or $(JOBS),1)
## two shards behind Spider, each with a replica: KILLS of any server, nothing
## acknowledged is lost
cluster: build
	@$(CHEETAH) pytest tests/server/test_cluster.py -s --rounds $(or $(KILLS),10) $(SEEDED)
## every decoder under libFuzzer, FUZZ_SECONDS each (needs a nightly compiler and
## cargo-fuzz)
fuzz:
	@cd fuzz && for target in $$(cargo +nightly fuzz list); do \
		cargo +nightly fuzz run $$target -- -max_total_time=$(or $(FUZZ_SECONDS),60) \
			-timeout=5 -malloc_limit_mb=128 || exit 1; \
	done

SEEDED = $(if $(SEED),--seed $(SEED))

##@ Measurements

## bytes, load, scan, point selects and transactions beside InnoDB
## (ARGS="--sets oltp")
bench: build ; @$(CHEETAH) bench $(ARGS)
## the documents' experiments side by side, as a page; FULL=1, EXPERIMENT=name,
## SCALE=0.1, ENGINES="..", REPEATS, RUN, FRESH=1
lab:   ; @$(CHEETAH) lab run --build $(LAB)

EXPERIMENTS = $(foreach name,$(EXPERIMENT),--experiment $(name))
# What `make lab` hands through.
LAB = $(if $(FULL),--full) $(EXPERIMENTS) $(if $(SCALE),--scale $(SCALE)) \
	$(if $(REPEATS),--repeats $(REPEATS)) $(foreach key,$(ENGINES),--engine $(key)) \
	$(if $(RUN),--run "$$RUN") $(if $(FRESH),--fresh) $(ARGS)
export RUN   # so that the shell takes it as it is

.PHONY: help setup build demo up sql down deb install clean \
	test sqltests servertests isolation differential apps suites check-data big upgrades labtests \
	crash soak cluster fuzz bench lab
