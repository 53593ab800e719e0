# Cheetah's commands. `make` lists them; each does its own set-up (MariaDB is unpacked under var/; only missing build tools are installed).
CHEETAH = python3 tools/cheetah.py

# The server's series: SERVER=11.8 for another one than 10.11.
ifdef SERVER
export CHEETAH_SERVER = $(SERVER)
endif

# What `make lab` hands through.
LAB = $(if $(FULL),--full) $(foreach name,$(EXPERIMENT),--experiment $(name)) $(if $(SCALE),--scale $(SCALE)) \
	$(if $(REPEATS),--repeats $(REPEATS)) $(foreach key,$(ENGINES),--engine $(key)) $(if $(RUN),--run "$$RUN") $(if $(FRESH),--fresh) \
	$(if $(DUMP),--dump "$$DUMP") $(if $(XML),--xml "$$XML") $(if $(LIVE),--live "$$LIVE") $(ARGS)
export RUN DUMP XML LIVE   # so that the shell takes them as they are

help:
	@sed -n 's/^\([a-z-]*\) *:.*## /  make \1\t/p' Makefile | expand -t 20

setup: ; @$(CHEETAH) setup     ## download and unpack the private MariaDB (done by the others when needed)
build: ; @$(CHEETAH) build     ## build/ha_cheetah.so
up:    ; @$(CHEETAH) up        ## start a private server under var/run
sql:   ; @$(CHEETAH) sql       ## a client of that server; reads statements from standard input too
down:  ; @$(CHEETAH) down      ## stop it
demo:  ; @$(CHEETAH) demo $(if $(DUMP),--dump "$(DUMP)")   ## the main job: real text in InnoDB and Cheetah, then kill -9 (DUMP=file.sql.gz)
test: setup ; @$(CHEETAH) test $(if $(STEP_MINUTES),--step-minutes $(STEP_MINUTES))   ## every check and test; the last line is the sum (STEP_MINUTES=60 on a busy machine)
bench: build ; @$(CHEETAH) bench $(ARGS)   ## bytes, load, scan, point selects and transactions beside InnoDB (ARGS="--sets oltp")
crash: $(if $(IMAGES),,build)   ## kill -9 a loaded server ROUNDS times (LARGE=1: also with data of 20 times the cache); IMAGES=n: so many images of power cuts in the simulation, goes on where it stopped
	@$(if $(IMAGES),$(CHEETAH) images --images $(IMAGES) --jobs $(or $(JOBS),1),$(CHEETAH) pytest tests/server/test_crash.py tests/server/test_transfers.py -s --rounds $(or $(ROUNDS),8) $(if $(SEED),--seed $(SEED)) $(if $(LARGE),--large))
soak: build ; @$(CHEETAH) soak --hours $(or $(HOURS),1) $(if $(SEED),--seed $(SEED)) --jobs $(or $(JOBS),1)   ## rounds of everything, drawn at random, JOBS at a time, for HOURS of rounds: kills, DDL, backups, statements beside InnoDB
cluster: build ; @$(CHEETAH) pytest tests/server/test_cluster.py -s --rounds $(or $(KILLS),10) $(if $(SEED),--seed $(SEED))   ## two shards behind Spider, each with a replica: KILLS of any server, nothing acknowledged is lost
big: build ; @$(CHEETAH) pytest tests/server/test_pool_memory.py -s --large   ## a table of 5 GB in a pool of 64 MB: is the memory limit kept?
check-data: build ; @$(CHEETAH) pytest tests/server/test_data_sets.py -s --large   ## load the data sets beside the project, compare checksums
suites: build ; @$(CHEETAH) suites $(ARGS)   ## MariaDB's own suites, on InnoDB and Cheetah
differential: build ; @python3 tests/differential/run.py $(ARGS)   ## random statements beside InnoDB (ARGS="--seed 7")
sqltests: build ; @$(CHEETAH) pytest tests/sql $(ARGS)   ## the scripts of tests/sql, on InnoDB and Cheetah (ARGS="NAME ..")
servertests: build ; @$(CHEETAH) pytest tests/server $(ARGS)   ## kills in DDL and under load, damaged files, full disk, memory (ARGS="--large", "tpcc --rounds 50")
isolation: build ; @$(CHEETAH) pytest tests/isolation/test_engines.py -s $(if $(LONG),--large) $(ARGS)   ## Hermitage, random histories and interleavings beside InnoDB (LONG=1: 200 histories of 10,000)
apps: build ; @$(CHEETAH) pytest tests/apps $(if $(LONG),--large) $(ARGS)   ## applications and tools beside InnoDB: MediaWiki, WordPress, Django, .. (LONG=1: more of each; ARGS="mediawiki")
fuzz:   ## every decoder under libFuzzer, FUZZ_SECONDS each (needs a nightly compiler and cargo-fuzz)
	@cd fuzz && for target in $$(cargo +nightly fuzz list); do cargo +nightly fuzz run $$target -- -max_total_time=$(or $(FUZZ_SECONDS),60) -timeout=5 -malloc_limit_mb=128 || exit 1; done
lab:   ; @$(CHEETAH) lab run --build $(LAB)   ## the documents' experiments side by side, as a page; FULL=1, EXPERIMENT=name, SCALE=0.1, ENGINES="..", REPEATS, DUMP, XML, LIVE
lab-compare: ; @$(CHEETAH) lab compare "$(A)" "$(B)" $(foreach name,$(EXPERIMENT),--experiment $(name))   ## two runs of the lab: what moved beyond the noise, as a page (A=name B=name)
labtests: build ; @$(CHEETAH) pytest tests/lab $(ARGS)   ## the lab's own tests (ARGS="test_page")
upgrades: build ; @$(CHEETAH) pytest tests/upgrades $(ARGS)   ## install, upgrade, remove the package on a small Debian (needs root; ARGS="NAME ..")
deb:   ; @$(CHEETAH) deb       ## build/mariadb-plugin-cheetah_*.deb
install: ; @$(CHEETAH) install   ## into the installed server, if it is of the very same version
clean: ; @$(CHEETAH) clean     ## delete what was built

.PHONY: fuzz help setup build up sql down demo test bench deb install crash cluster big check-data suites differential isolation sqltests servertests lab lab-compare labtests apps clean upgrades soak
