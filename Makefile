# SPDX-License-Identifier: Apache-2.0
# Short names for the project's jobs; CMake, ctest and tools/ do the work.

SHELL := /bin/bash
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 10
# The builds of the page's core: with the 128-bit vectors of WebAssembly, and without.
WEB_KINDS ?= simd plain
PREFIX ?= /usr/local
AGAIN := $(MAKE) --no-print-directory
VERSION = $(shell sed -n 's/^project(weighbridge VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
SOURCES = $(shell git ls-files --cached --others --exclude-standard '*.cc' '*.h' 2>/dev/null)
WHEEL = "$$(ls -t build/wheels/weighbridge-*-linux_*.whl | head -1)"

.PHONY: help setup build demo test check check-long quick interop stage install package wheel wheels dist web web-serve docs site bench format tidy generate soak clean
.NOTPARALLEL:

help: ## say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## install what building needs (Debian, Ubuntu); FOR=test, check, web, ...: what that needs
	@tools/install-packages.sh $(or $(FOR),build)

build: setup ## build the command: build/release/weighbridge
	@[ -f build/release/build.ninja ] || cmake --preset release -DWEIGHBRIDGE_TESTS=OFF
	cmake --build build/release -j $(JOBS) --target weighbridge

demo: ## say what it installs, build, make a sample model and take it through everything
	@tools/demo.sh

test: ## what a newcomer runs: house rules, one build, its unit, corpus and command tests
	@tools/stages.sh $@ \
	  "packages" "$(AGAIN) setup FOR=test" \
	  "house rules" "$(AGAIN) stage-house" \
	  "unit, corpus and layering tests (GCC, the release build)" "$(AGAIN) stage-unit" \
	  "command and witness tests that need no foreign Python packages" "$(AGAIN) stage-command" \
	  "the Python package where no other is" "$(AGAIN) stage-core"

quick: ## build and test what the uncommitted change can break, in minutes; SINCE=REV: all that changed since then
	@tools/install-packages.sh test
	@tools/quick.py

check: ## everything else that must be green: release, published packages, browser, sanitizers, threads, a short fuzz run
	@tools/stages.sh $@ \
	  "packages and Python environments" "$(AGAIN) stage-environments" \
	  "everything compiles, benchmarks and fuzz targets too" "$(AGAIN) stage-compile" \
	  "a word for each public name" "$(AGAIN) stage-reference" \
	  "the packages made of the release build" "$(AGAIN) stage-packages" \
	  "interop with the published packages, and robustness" "$(AGAIN) interop-published" \
	  "the Python package" "$(AGAIN) stage-python" \
	  "the browser: core with vectors, npm package and page" "$(AGAIN) stage-web WEB_KINDS=simd" \
	  "clang 16: address and undefined-behavior sanitizers, and a short fuzz run" "$(AGAIN) stage-fuzz" \
	  "clang 16: thread sanitizer over the lowest layers with threads, and crews" "$(AGAIN) stage-threads THREADED='base_test io_test runtime_kernels_test'"

PARTS = packages peers malformed fuzz threads emulators quantizers
check-long: ## what does not fit, before a release; PART=packages, peers, malformed, fuzz, threads, emulators or quantizers: only that
	@$(AGAIN) stage-environments
	@for part in $(or $(PART),$(PARTS)); do $(AGAIN) part-$$part || exit; done

part-packages:
	@tools/stages.sh $@ \
	  "the shared library" "$(AGAIN) stage-shared" \
	  "the browser: core with and without vectors, npm package and page" "$(AGAIN) stage-web" \
	  "the page in Firefox" "$(AGAIN) stage-firefox" \
	  "the Python package with each Python that is here, and from its source archive" "$(AGAIN) stage-pythons" \
	  "the package and the wheels on clean systems" "$(AGAIN) stage-roots" \
	  "the same bytes from two folders" "$(AGAIN) stage-reproducible"

part-peers:
	@tools/stages.sh $@ $(foreach peer,$(PEERS),"beside $(peer)" "$(AGAIN) interop-$(peer)")

part-malformed:
	@tools/stages.sh $@ \
	  "properties with other random cases" "$(AGAIN) stage-properties" \
	  "100,000 malformed files of each format, and the corpus changed and cut everywhere" "$(AGAIN) stage-malformed" \
	  "the Python package under the address sanitizer" "tools/test-python-asan.sh"

part-fuzz:
	@tools/stages.sh $@ "clang 16: each fuzz target for ten minutes, and the cost of each format for three" "$(AGAIN) stage-fuzz FUZZ_SECONDS=600"

part-threads:
	@tools/stages.sh $@ "clang 16: thread sanitizer over everything" "$(AGAIN) stage-all-threads"

part-emulators:
	@tools/stages.sh $@ "the released wheels" "$(AGAIN) wheels" "aarch64 under an emulator" "tools/test-aarch64.sh"

part-quantizers:
	@tools/stages.sh $@ \
	  "200,000 rows of each type, without a matrix and with, beside GGML and its build for processors with FMA" "$(AGAIN) stage-quantizers" \
	  "a folder of 20 GiB in 256 MiB" "WEIGHBRIDGE_LARGE=1 tools/run-pytest.sh system tests/robustness/test_memory.py -k folder_is_quantized"

# What interop and stage run.
PEERS = published differential llama model-signing deltas torch-files torch ray
interop: ## run the tests beside PEER: published, differential, llama, model-signing, deltas, torch-files, torch (5.4 GB) or ray (1.1 GB)
	@[[ " $(PEERS) " == *" $(PEER) "* ]] || { echo "usage: make interop PEER=NAME; the names are $(PEERS)" >&2; exit 2; }
	@$(AGAIN) interop-$(PEER)

stage: ## run one stage of test, check or check-long: NAME=house, unit, command, fuzz, ... (without NAME: say which there are)
	@grep -q '^stage-$(NAME):' $(firstword $(MAKEFILE_LIST)) || { echo "usage: make stage NAME=NAME; the names are" \
	  $$(sed -n 's/^stage-\([a-z-]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST))) >&2; exit 2; }
	@$(AGAIN) stage-$(NAME)

stage-environments: # installs what check needs: clang, strace, doxygen, the Python environments of the interop tests, weights, vocabularies
	@tools/install-packages.sh check
	@tools/python-environments.sh
	@tools/fetch-minilm.sh || true
	@tools/fetch-vocabularies.sh || true
	@[ -d build/sarif-multitool ] || npm install --silent --ignore-scripts --no-save --prefix build/sarif-multitool @microsoft/sarif-multitool@5.7.0 || true

stage-house: # layering, license lines, formatting, links of the pages
	@$(AGAIN) format CHECK=1
	python3 tests/layering/check.py
	python3 tests/repository/check.py
	python3 tests/repository/pages.py
	python3 tests/repository/readings.py
	python3 tests/repository/performance.py
	python3 tools/house_size.py --thin 60
	python3 tests/repository/promises.py
	python3 tools/exports.py --check
	python3 tools/python_reference.py --check

stage-unit: # builds what is released with GCC, and runs ctest
	cmake --preset release
	cmake --build build/release -j $(JOBS)
	python3 tools/run_ctest.py test -j $(JOBS)

stage-command: # the Python tests that need no foreign packages
	@tools/run-pytest.sh system tests/cli tests/tools tests/witness

stage-core: # the Python package where no other is
	@tools/test-python-core.sh build/release

stage-compile: # everything that there is: tests, benchmarks, fuzz targets; and each source alone, which must include what it uses
	cmake --preset release -DWEIGHBRIDGE_BENCH=ON
	cmake --build build/release -j $(JOBS)
	cmake --preset fuzz
	cmake --build build/fuzz -j $(JOBS)
	cmake --preset quick
	cmake --build build/quick -j $(JOBS) --target weighbridge

stage-reference:
	python3 tests/repository/reference.py

stage-packages: # makes the Debian packages and the .tar.gz; unpacks, runs, builds against, installs and removes them
	cmake --preset release
	cmake --build build/release -j $(JOBS)
	python3 tools/run_ctest.py package -j $(JOBS)

stage-python: wheel # installs the wheel where nothing else is, and with NumPy; runs its tests
	@tools/test-python.sh build/venv-python $(WHEEL)

stage-pythons: wheel # the same with each of Python 3.10 to 3.13 that is here; and a wheel from the source archive
	@tools/test-pythons.sh
	@tools/test-sdist.sh build/venv-python

stage-roots: stage-packages wheels # the Debian package and the released wheels on clean Debian 12, Debian 13 and Ubuntu 24.04; needs root
	python3 tests/package/roots.py build/release build/wheels/released

stage-reproducible: # builds HEAD twice in different folders, once without the compiler cache, and compares every byte of what is released
	@tools/check-reproducible.sh $(REPRODUCIBLE_ARGUMENTS)

stage-shared: setup # the shared library, installed, and the command and a stranger's program by it
	python3 tests/package/check.py --build build/release --work build/package --cmake "$$(command -v cmake)" --compiler "$$(command -v c++)" \
	  --version "$(VERSION)" shared

stage-web: web # the npm package under Node, the page in Chromium, and one test of it in Firefox
	@tools/test-web.sh
	@tools/install-packages.sh firefox
	@WEIGHBRIDGE_BROWSER=firefox PAGE_TESTS=keyboard tools/test-web.sh

stage-firefox: web # all tests of the page in Firefox
	@tools/install-packages.sh firefox
	@WEIGHBRIDGE_BROWSER=firefox tools/test-web.sh

stage-fuzz: # clang 16, sanitizers and libFuzzer; ctest, each target for FUZZ_SECONDS, the planted bugs
	@tools/install-packages.sh check
	cmake --preset fuzz -DWEIGHBRIDGE_FUZZ_SECONDS=$(FUZZ_SECONDS)
	cmake --build build/fuzz -j $(JOBS)
	python3 tools/run_ctest.py fuzz -j $(JOBS)

stage-threads: # the programs with threads under the thread sanitizer; THREADED="base_test io_test": only these
	cmake --preset tsan
	cmake --build build/tsan -j $(JOBS) --target $(or $(THREADED),tests_with_threads)
	python3 tools/run_ctest.py threads -j $(JOBS) -R "^($$(tr ' ' '|' <<<'$(or $(THREADED),.*)'))$$"

stage-all-threads:
	cmake --preset tsan
	cmake --build build/tsan -j $(JOBS)
	python3 tools/run_ctest.py tsan -j $(JOBS)
	@WEIGHBRIDGE="$(CURDIR)/build/tsan/weighbridge" tools/run-pytest.sh published tests/cli

stage-properties: # properties of conversions with 200 random cases each that no run had before
	cmake --preset release
	cmake --build build/release -j $(JOBS) --target convert_test
	RC_PARAMS="max_success=200" build/release/src/convert/convert_test --gtest_brief=1 --gtest_filter='ConvertProperty*:*EveryPair*:Canonical*'

stage-malformed:
	cmake --preset release
	cmake --build build/release -j $(JOBS) --target corpus_malformed corpus_test
	build/release/tests/corpus/corpus_malformed 100000
	WEIGHBRIDGE_THOROUGH=1 build/release/tests/corpus/corpus_test --gtest_brief=1

# make test runs these with the packages of the system, and skips what needs others: a JSON schema, ml_dtypes.
NEED_PACKAGES = tests/cli
interop-published:
	@tools/run-pytest.sh published tests/interop tests/robustness $(NEED_PACKAGES)

stage-llama: # compiles llama.cpp, and fetches its vocabularies and sources
	cmake --preset release
	cmake --build build/release -j $(JOBS) --target weighbridge code_blocks
	@tools/python-environments.sh tests/interop/llama-requirements.txt build/venv-llama
	@tools/fetch-vocabularies.sh

stage-quantizers: stage-llama
	WEIGHBRIDGE_QUANTIZED_ROWS=200000 build/venv-llama/bin/python -m pytest -q -n $(JOBS) -p no:cacheprovider -k encodes tests/interop/test_ggml_blocks.py

interop-llama: stage-llama # llama.cpp is compiled for it: files, blocks, splits, texts and greedy ids beside it
	build/venv-llama/bin/python -m pytest -q -p no:cacheprovider tests/interop/test_gguf*.py tests/interop/test_ggml_blocks.py

interop-model-signing: # manifests beside the reference of OpenSSF Model Signing, both ways
	cmake --preset release
	cmake --build build/release -j $(JOBS) --target weighbridge
	@tools/python-environments.sh tests/interop/model-signing-requirements.txt build/venv-model-signing
	build/venv-model-signing/bin/python -m pytest -q -rs -p no:cacheprovider tests/interop/test_model_signing.py

interop-deltas: # published differences beside slime and SkyRL, both ways; SLIME=, SKYRL=: checkouts of their repositories, else fetched
	cmake --preset release
	cmake --build build/release -j $(JOBS) --target weighbridge
	@tools/python-environments.sh tests/interop/deltas-requirements.txt build/venv-deltas
	@for peer in slime=THUDM/slime skyrl=NovaSky-AI/SkyRL; do name=$${peer%%=*}; upper=$${name^^}; \
	  [ -n "$${!upper-}" ] || [ -d build/peers/$$name ] || \
	  git clone -q --depth 1 https://github.com/$${peer#*=} build/peers/$$name || echo "$$name cannot be fetched: its tests skip"; done
	build/venv-deltas/bin/python -m pytest -q -rs -p no:cacheprovider tests/interop/test_deltas.py

interop-torch-files: # files of PyTorch beside PyTorch itself, both ways
	cmake --preset release
	cmake --build build/release -j $(JOBS) --target weighbridge
	@tools/python-environments.sh python/ecosystem/requirements.txt build/venv-torch
	@$${TORCH_PYTHON:-build/venv-torch/bin/python} -m pytest -q -rs -p no:cacheprovider tests/interop/test_pytorch.py

DIFFERENTIAL_SECONDS ?= 600
interop-differential: # changed files beside pickle, PyTorch, NumPy, h5py, ONNX, safetensors, gguf: so many seconds for each family
	cmake --preset release
	cmake --build build/release -j $(JOBS) --target weighbridge read_dump
	@tools/python-environments.sh tests/interop/requirements.txt build/venv
	@[ -n "$$TORCH_PYTHON" ] || tools/python-environments.sh python/ecosystem/requirements.txt build/venv-torch
	@DIFFERENTIAL_SECONDS=$(DIFFERENTIAL_SECONDS) tools/run-pytest.sh published -rP tests/interop/test_differential.py

interop-torch: wheel # safetensors' own tests, transformers, sentence-transformers with weighbridge in its place
	@tools/test-torch.sh

interop-ray: wheel # corpora and lakes on Ray, and DuckDB, Polars, Daft, pyarrow: workers and nodes that end, a lake of a thousand files
	@tools/test-ray.sh

install: build ## install command, library and headers below PREFIX (/usr/local)
	cmake --build build/release -j $(JOBS)
	cmake --install build/release --prefix $(PREFIX)

package: setup ## make the .deb files and the .tar.gz: build/release/packages
	@[ -f build/release/build.ninja ] || cmake --preset release -DWEIGHBRIDGE_TESTS=OFF
	cmake --build build/release -j $(JOBS) --target weighbridge weighbridge_library pages
	@umask 022 && cd build/release && cpack -B packages  # CPack writes the umask into a .deb
	@ls -l build/release/packages/*.deb build/release/packages/*.tar.gz

wheel: ## build the Python package with this machine's compiler, and its source archive: build/wheels
	@tools/install-packages.sh python
	@[ -f build/release/build.ninja ] || cmake --preset release -DWEIGHBRIDGE_TESTS=OFF
	cmake --build build/release -j $(JOBS) --target weighbridge weighbridge_library
	@tools/python-environments.sh tests/interop/requirements-python.txt build/venv-python
	@tools/make-wheel.sh build/venv-python/bin/python
	@tools/make-sdist.sh build/venv-python/bin/python

wheels: ## build the released wheels by the package ziglang (glibc 2.17, x86-64 and aarch64; MACHINES=x86_64): build/wheels/released
	@tools/install-packages.sh wheels
	@tools/make-wheels.sh $(MACHINES)

dist: ## make all that a release publishes: build/dist; ONLY="command deb": these; DIST_KEY=FILE: signed; DIST_URL=URL: for install.sh
	@tools/dist.py $(ONLY)

web: ## build the page: build/web/site, and the npm package: web/api
	@tools/install-packages.sh web
	@WEB_KINDS="$(WEB_KINDS)" tools/build-web.sh

web-serve: web ## build the page and serve it on the loopback address
	node web/tests/serve.mjs build/web/site

docs: setup ## write the generated pages of docs/ anew
	@[ -f build/release/build.ninja ] || cmake --preset release -DWEIGHBRIDGE_TESTS=OFF
	cmake --build build/release -j $(JOBS) --target docs
	python3 tools/python_reference.py

site: ## make the documentation a site with search, and the reference of the C++ API: build/site/index.html
	@tools/install-packages.sh reference
	@mkdir -p build
	@WEIGHBRIDGE_VERSION=$(VERSION) doxygen docs/Doxyfile
	@tools/install-packages.sh docs-site
	@tools/python-environments.sh docs/site/requirements.txt build/venv-docs
	@python3 tools/docs_site.py build/venv-docs/bin/mkdocs

bench: ## build and run the benchmarks, in turns with the peers that are there: BENCH_TURNS=1 for a short try; REPORT=1: put the last results into docs/
	@tools/install-packages.sh bench
	$(if $(REPORT),python3 bench/report.py --from build/bench/results,@tools/run-bench.sh $(BENCH_ARGUMENTS))

format: ## lay out the sources with clang-format 16; CHECK=1: say which it would change
	@clang-format-16 $(if $(CHECK),--dry-run --Werror,-i) $(SOURCES)

tidy: ## run clang-tidy 16 over the sources
	@tools/install-packages.sh tidy
	cmake --preset quick
	run-clang-tidy-16 -quiet -p build/quick "$(CURDIR)/(src|cli)/.*\.cc"

generate: ## write anew what comes from code or data: the corpus, the tables of Unicode, the generated pages
	@tools/install-packages.sh test
	python3 tools/generate_unicode_tables.py
	python3 tools/generate_width_table.py
	cmake --preset release
	cmake --build build/release -j $(JOBS) --target corpus
	@$(AGAIN) docs

soak: wheel ## go over a lake of a thousand model files for MINUTES (30) in one process: memory and open files may not grow
	@rm -rf build/lake build/lake-site
	@build/venv-python/bin/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --target build/lake-site $(WHEEL)
	@PYTHONPATH=build/lake-site build/venv-python/bin/python tools/make_lake.py build/lake
	@PYTHONPATH=build/lake-site build/venv-python/bin/python tools/soak.py build/lake --minutes $(or $(MINUTES),30)

clean: ## remove everything that was built
	rm -rf build

# The names of 0.2, for one release.
define alias
.PHONY: $(1)
$(1):
	@echo "make $(1) is now: make $(2)" >&2
	@$$(AGAIN) $(2)
endef
$(eval $(call alias,setup-test,setup FOR=test))
$(eval $(call alias,setup-check,stage NAME=environments))
$(foreach name,house unit command reference packages python pythons web fuzz threads all-threads malformed properties shared, \
  $(eval $(call alias,test-$(name),stage NAME=$(name))))
$(foreach name,firefox roots reproducible,$(eval $(call alias,check-$(name),stage NAME=$(name))))
$(foreach peer,differential torch-files torch llama ray model-signing,$(eval $(call alias,check-$(peer),interop PEER=$(peer))))
$(eval $(call alias,test-interop,interop PEER=published))
$(eval $(call alias,fuzz,stage NAME=fuzz))
$(eval $(call alias,format-check,format CHECK=1))
$(eval $(call alias,corpus,generate))
$(eval $(call alias,unicode,generate))
$(eval $(call alias,reference,site))
$(eval $(call alias,docs-site,site))
$(eval $(call alias,bench-report,bench REPORT=1))
$(eval $(call alias,lake,soak))
