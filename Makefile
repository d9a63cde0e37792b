# SPDX-License-Identifier: Apache-2.0
# The short names of the project's jobs; CMake, ctest and tools/ do the work.

SHELL := /bin/bash
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 10
PREFIX ?= /usr/local
STAGE := tools/stage.sh
SOURCES = $(shell git ls-files --cached --others --exclude-standard '*.cc' '*.h' 2>/dev/null)

.PHONY: help setup setup-test build build-demo demo test test-house test-unit test-interop test-web test-fuzz test-shared bench bench-report sanitize fuzz corpus \
  docs reference unicode format format-check tidy install package web web-serve clean
.NOTPARALLEL:

help: ## say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## install what building needs (Debian, Ubuntu)
	@tools/install-packages.sh build

setup-test: ## install what testing needs: the above, clang, test libraries, the Python environments of the interop tests
	@tools/install-packages.sh test
	@tools/python-environments.sh
	@tools/fetch-minilm.sh || true

build: setup ## build the command: build/release/weighbridge
	@[ -f build/release/build.ninja ] || cmake --preset release -DWEIGHBRIDGE_TESTS=OFF
	cmake --build build/release -j $(JOBS) --target weighbridge

build-demo:
	@tools/install-packages.sh demo
	@[ -f build/release/build.ninja ] || cmake --preset release -DWEIGHBRIDGE_TESTS=OFF
	cmake --build build/release -j $(JOBS) --target weighbridge sample_model sample_encoder

demo: ## build, make a sample model and walk it through everything
	@tools/demo.sh

test: ## everything that must be green: house rules, unit, corpus, interop, sanitizers, a short fuzz run
	@$(STAGE) "packages and Python environments" $(MAKE) --no-print-directory setup-test
	@$(STAGE) "house rules" $(MAKE) --no-print-directory test-house
	@$(STAGE) "unit, corpus, layering and command tests (GCC, release)" $(MAKE) --no-print-directory test-unit
	@$(STAGE) "interop with the published packages" $(MAKE) --no-print-directory test-interop
	@$(STAGE) "the browser: core, npm package and page" $(MAKE) --no-print-directory test-web
	@$(STAGE) "clang 16: the same tests under sanitizers, and a short fuzz run" $(MAKE) --no-print-directory test-fuzz

test-house: format-check ## layering, license lines, formatting, links of the pages, a word for each public name
	python3 tests/layering/check.py
	python3 tests/repository/check.py
	python3 tests/repository/pages.py
	python3 tests/repository/readings.py
	python3 tests/repository/performance.py
	python3 tests/repository/reference.py

test-unit: ## build with GCC and run ctest
	cmake --preset release
	cmake --build build/release -j $(JOBS)
	ctest --preset release -j $(JOBS)

test-interop: ## run the Python tests against the release build
	@tools/run-pytest.sh

test-web: web ## build for the browser; run the npm package under Node and the page in Chromium
	@tools/test-web.sh

test-fuzz: ## build with clang 16, sanitizers and libFuzzer; run ctest, fuzz each target for FUZZ_SECONDS, find the planted bugs
	cmake --preset fuzz -DWEIGHBRIDGE_FUZZ_SECONDS=$(FUZZ_SECONDS)
	cmake --build build/fuzz -j $(JOBS)
	ctest --preset fuzz -j $(JOBS)

sanitize: setup-test ## the tests under the address, undefined-behavior and thread sanitizers
	cmake --preset asan
	cmake --build build/asan -j $(JOBS)
	ctest --preset asan -j $(JOBS)
	cmake --preset tsan
	cmake --build build/tsan -j $(JOBS)
	ctest --preset tsan -j $(JOBS)

fuzz: setup-test ## fuzz for long: make fuzz FUZZ_SECONDS=600
	@$(MAKE) --no-print-directory test-fuzz

bench: ## build and run the benchmarks, in turns with the peers that are there: BENCH_TURNS=1 for a short try
	@tools/install-packages.sh bench
	cmake --preset bench
	cmake --build build/bench -j $(JOBS)
	@tools/run-bench.sh $(BENCH_ARGUMENTS)

bench-report: ## put the results of the last run into docs/performance.md and docs/charts
	python3 bench/report.py --from build/bench/results

corpus: setup-test ## write the corpus anew from the code that builds it
	cmake --preset release
	cmake --build build/release -j $(JOBS) --target corpus

docs: setup ## write the generated pages of docs/ anew
	@[ -f build/release/build.ninja ] || cmake --preset release -DWEIGHBRIDGE_TESTS=OFF
	cmake --build build/release -j $(JOBS) --target docs

reference: ## make the reference of the C++ API: build/reference/index.html
	@tools/install-packages.sh reference
	@mkdir -p build
	@WEIGHBRIDGE_VERSION=$$(sed -n 's/^project(weighbridge VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt) doxygen docs/Doxyfile
	@echo "build/reference/index.html"

unicode: setup-test ## write the tables of Unicode anew from Debian's unicode-data
	python3 tools/generate_unicode_tables.py
	python3 tools/generate_width_table.py

format: ## lay out the sources with clang-format 16
	clang-format-16 -i $(SOURCES)

format-check: ## say which sources clang-format 16 would change
	@clang-format-16 --dry-run --Werror $(SOURCES)

tidy: setup-test ## run clang-tidy 16 over the sources
	cmake --preset asan
	run-clang-tidy-16 -quiet -p build/asan "$(CURDIR)/(src|cli)/.*\.cc"

install: build ## install command, library and headers below PREFIX (/usr/local)
	cmake --build build/release -j $(JOBS)
	cmake --install build/release --prefix $(PREFIX)

test-shared: setup ## build the shared library, install it, and run the command and a stranger's program by it
	python3 tests/package/check.py --build build/release --work build/package --cmake "$$(command -v cmake)" --compiler "$$(command -v c++)" \
	  --version "$$(sed -n 's/^project(weighbridge VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)" shared

package: setup ## make the .deb files and the .tar.gz: build/release/packages
	@[ -f build/release/build.ninja ] || cmake --preset release -DWEIGHBRIDGE_TESTS=OFF
	cmake --build build/release -j $(JOBS) --target weighbridge weighbridge_library pages
	@cd build/release && cpack -B packages
	@ls -l build/release/packages/*.deb build/release/packages/*.tar.gz

web: ## build the page: build/web/site, and the npm package: web/api
	@tools/install-packages.sh web
	@tools/build-web.sh

web-serve: web ## build the page and serve it on the loopback address
	node web/tests/serve.mjs build/web/site

clean: ## remove everything that was built
	rm -rf build
