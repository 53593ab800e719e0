# Cheetah's commands; `make` lists them. Each command does its own set-up: it unpacks MariaDB under
# var/ and installs missing build tools.
#
# `##@` begins a group of the list. `##` describes the target below it.
CHEETAH = python3 tools/cheetah.py

# The server's series: 10.11 by default, another one with SERVER=11.8.
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

## download and unpack the private MariaDB (other targets do so when needed)
setup: ; @$(CHEETAH) setup
## build build/ha_cheetah.so
build: ; @$(CHEETAH) build
## the main demonstration: real text in InnoDB and Cheetah, then kill -9
## (DUMP=file.sql.gz)
demo:  ; @$(CHEETAH) demo $(if $(DUMP),--dump "$(DUMP)")
## start a private server under var/run
up:    ; @$(CHEETAH) up
## run a client of that server; it also reads statements from standard input
sql:   ; @$(CHEETAH) sql
## stop that server
down:  ; @$(CHEETAH) down
## build build/mariadb-plugin-cheetah_*.deb
deb:   ; @$(CHEETAH) deb
## install the plugin into the installed server, if the versions match
install: ; @$(CHEETAH) install
## delete build results
clean: ; @$(CHEETAH) clean

##@ Tests

## all checks and tests, with a summary in the last line
## (STEP_MINUTES=60 on a busy machine)
test: setup
	@$(CHEETAH) test $(if $(STEP_MINUTES),--step-minutes $(STEP_MINUTES))
## the scripts of tests/sql, on InnoDB and Cheetah (ARGS="NAME ..")
sqltests: build ; @$(CHEETAH) pytest tests/sql $(ARGS)
## kills in DDL and under load, damaged files, full disk, memory
## (ARGS="--large", "tpcc --rounds 50")
servertests: build ; @$(CHEETAH) pytest tests/server $(ARGS)
## Hermitage, random histories and interleavings, compared with InnoDB
## (LONG=1: 200 histories of 10,000)
isolation: build ; @$(CHEETAH) pytest tests/isolation/test_engines.py -s $(LARGE_IF_LONG) $(ARGS)
## random statements, compared with InnoDB (ARGS="--seed 7")
differential: build ; @python3 tests/differential/run.py $(ARGS)
## applications and tools, compared with InnoDB: MediaWiki, WordPress, Django, ..
## (LONG=1: more of each; ARGS="mediawiki")
apps: build ; @$(CHEETAH) pytest tests/apps $(LARGE_IF_LONG) $(ARGS)
## MariaDB's own suites, on InnoDB and Cheetah
suites: build ; @$(CHEETAH) suites $(ARGS)
## load the data sets next to the project and compare checksums
check-data: build ; @$(CHEETAH) pytest tests/server/test_data_sets.py -s --large
## check that a table of 5 GB in a pool of 64 MB keeps to the memory limit
big: build ; @$(CHEETAH) pytest tests/server/test_pool_memory.py -s --large
## install, upgrade and remove the package on a small Debian (needs root;
## ARGS="NAME ..")
upgrades: build ; @$(CHEETAH) pytest tests/upgrades $(ARGS)
## the lab's own tests (ARGS="test_page")
labtests: build ; @$(CHEETAH) pytest tests/lab $(ARGS)

LARGE_IF_LONG = $(if $(LONG),--large)

##@ Tests that run for hours (SEED=s repeats a run of crash, soak or cluster)

## kill -9 a loaded server ROUNDS times (LARGE=1: also with 20 times as much data
## as cache). With IMAGES=n: n images of simulated power cuts, JOBS at a time;
## continues an interrupted run
ifdef IMAGES
crash: ; @$(CHEETAH) images --images $(IMAGES) --jobs $(or $(JOBS),1)
else
crash: build
	@$(CHEETAH) pytest tests/server/test_crash.py tests/server/test_transfers.py -s \
		--rounds $(or $(ROUNDS),8) $(SEEDED) $(if $(LARGE),--large)
endif
## random rounds of all kinds for HOURS, JOBS at a time: kills, DDL, backups,
## statements compared with InnoDB; the same SEED continues an interrupted run
soak: build ; @$(CHEETAH) soak --hours $(or $(HOURS),1) $(SEEDED) --jobs $(or $(JOBS),1)
## two shards behind Spider, each with a replica: KILLS of random servers lose no
## acknowledged transaction
cluster: build
	@$(CHEETAH) pytest tests/server/test_cluster.py -s --rounds $(or $(KILLS),10) $(SEEDED)
## run every decoder under libFuzzer for FUZZ_SECONDS each (needs a nightly
## compiler and cargo-fuzz)
fuzz:
	@cd fuzz && for target in $$(cargo +nightly fuzz list); do \
		cargo +nightly fuzz run $$target -- -max_total_time=$(or $(FUZZ_SECONDS),60) \
			-timeout=5 -malloc_limit_mb=128 || exit 1; \
	done

SEEDED = $(if $(SEED),--seed $(SEED))

##@ Measurements

## bytes, load, scan, point selects and transactions, compared with InnoDB
## (ARGS="--sets oltp")
bench: build ; @$(CHEETAH) bench $(ARGS)
## repeat the experiments of published articles and write a page of results
## (FULL=1, EXPERIMENT=name, SCALE=0.1, ENGINES="..", REPEATS, RUN, FRESH=1)
lab:   ; @$(CHEETAH) lab run --build $(LAB)

EXPERIMENTS = $(foreach name,$(EXPERIMENT),--experiment $(name))
# The arguments that `make lab` passes on.
LAB = $(if $(FULL),--full) $(EXPERIMENTS) $(if $(SCALE),--scale $(SCALE)) \
	$(if $(REPEATS),--repeats $(REPEATS)) $(foreach key,$(ENGINES),--engine $(key)) \
	$(if $(RUN),--run "$$RUN") $(if $(FRESH),--fresh) $(ARGS)
export RUN   # so that the shell does not interpret its value

.PHONY: help setup build demo up sql down deb install clean \
	test sqltests servertests isolation differential apps suites check-data big upgrades labtests \
	crash soak cluster fuzz bench lab
