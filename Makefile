# SPDX-License-Identifier: Apache-2.0
# Short names for the project's jobs; CMake, ctest and tools/ do the work.

SHELL := /bin/bash
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 10
# The builds of the page's core: with the 128-bit vectors of WebAssembly, and without.
WEB_KINDS ?= simd plain
PREFIX ?= /usr/local
AGAIN := $(MAKE) --no-print-directory
SOURCES = $(shell git ls-files --cached --others --exclude-standard '*.cc' '*.h' 2>/dev/null)

.PHONY: help setup setup-test setup-check build build-demo compile-all demo test check check-long check-firefox test-house test-unit test-command test-reference \
  test-packages test-interop test-python test-pythons check-torch check-torch-files wheel wheels check-roots check-llama test-web test-fuzz test-threads test-all-threads test-malformed test-properties test-shared bench bench-report fuzz corpus docs docs-site reference unicode format check-model-signing check-ray lake soak \
  format-check tidy install package check-reproducible web web-serve clean
.NOTPARALLEL:

help: ## say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## install what building needs (Debian, Ubuntu)
	@tools/install-packages.sh build

setup-test: ## install what `make test` needs: the above, GoogleTest, pytest, clang-format
	@tools/install-packages.sh test

setup-check: ## install what `make check` needs: the above, clang, strace, doxygen, the Python environments of the interop tests
	@tools/install-packages.sh check
	@tools/python-environments.sh
	@tools/fetch-minilm.sh || true
	@tools/fetch-vocabularies.sh || true

build: setup ## build the command: build/release/weighbridge
	@[ -f build/release/build.ninja ] || cmake --preset release -DWEIGHBRIDGE_TESTS=OFF
	cmake --build build/release -j $(JOBS) --target weighbridge

build-demo:
	@tools/install-packages.sh demo
	@[ -f build/release/build.ninja ] || cmake --preset release -DWEIGHBRIDGE_TESTS=OFF
	cmake --build build/release -j $(JOBS) --target weighbridge sample_model sample_encoder

demo: ## say what it installs, build, make a sample model and take it through everything
	@tools/demo.sh

test: ## what a newcomer runs: house rules, one build, its unit, corpus and command tests
	@tools/stages.sh \
	  "packages" "$(AGAIN) setup-test" \
	  "house rules" "$(AGAIN) test-house" \
	  "unit, corpus and layering tests (GCC, the release build)" "$(AGAIN) test-unit" \
	  "command and witness tests that need no foreign Python packages" "$(AGAIN) test-command" \
	  "the Python package where no other is" "tools/test-python-core.sh build/release"

check: ## everything else that must be green: release, published packages, browser, sanitizers, threads, a short fuzz run
	@tools/stages.sh \
	  "packages and Python environments" "$(AGAIN) setup-check" \
	  "everything compiles, benchmarks and fuzz targets too" "$(AGAIN) compile-all" \
	  "a word for each public name" "$(AGAIN) test-reference" \
	  "the packages made of the release build" "$(AGAIN) test-packages" \
	  "interop with the published packages, and robustness" "$(AGAIN) test-interop" \
	  "the Python package" "$(AGAIN) test-python" \
	  "the browser: core with vectors, npm package and page" "$(AGAIN) test-web WEB_KINDS=simd" \
	  "clang 16: address and undefined-behavior sanitizers, and a short fuzz run" "$(AGAIN) test-fuzz" \
	  "clang 16: thread sanitizer over the lowest layers with threads, and crews" "$(AGAIN) test-threads THREADED='base_test io_test runtime_kernels_test'"

check-long: setup-check ## what does not fit, before a release: fuzzing for long, threads and malformed files without a sample
	@tools/stages.sh \
	  "the shared library" "$(AGAIN) test-shared" \
	  "the browser: core with and without vectors, npm package and page" "$(AGAIN) test-web" \
	  "the page in Firefox" "$(AGAIN) check-firefox" \
	  "the Python package with each Python that is here, and from its source archive" "$(AGAIN) test-pythons" \
	  "the Python package under the address sanitizer" "tools/test-python-asan.sh" \
	  "the package and the wheels on clean systems" "$(AGAIN) check-roots" \
	  "GGUF beside llama.cpp" "$(AGAIN) check-llama" \
	  "properties with other random cases" "$(AGAIN) test-properties" \
	  "manifests beside model-signing" "$(AGAIN) check-model-signing" \
	  "100,000 malformed files of each format, and the corpus changed and cut everywhere" "$(AGAIN) test-malformed" \
	  "clang 16: each fuzz target for ten minutes, and the cost of each format for three" "$(AGAIN) test-fuzz FUZZ_SECONDS=600" \
	  "clang 16: thread sanitizer over everything" "$(AGAIN) test-all-threads"

test-house: format-check ## layering, license lines, formatting, links of the pages
	python3 tests/layering/check.py
	python3 tests/repository/check.py
	python3 tests/repository/pages.py
	python3 tests/repository/readings.py
	python3 tests/repository/performance.py
	python3 tools/exports.py --check
	python3 tools/python_reference.py --check

compile-all:
	cmake --preset release -DWEIGHBRIDGE_BENCH=ON
	cmake --build build/release -j $(JOBS)
	cmake --preset fuzz
	cmake --build build/fuzz -j $(JOBS)

test-reference:
	python3 tests/repository/reference.py

test-unit: ## build what is released with GCC, and run ctest
	cmake --preset release
	cmake --build build/release -j $(JOBS)
	python3 tools/run_ctest.py test -j $(JOBS)

test-command: ## run the Python tests that need no foreign packages against that build
	@tools/run-pytest.sh system tests/cli tests/witness

test-packages: ## make the Debian packages and the .tar.gz; unpack, run, build against, install and remove them
	cmake --preset release
	cmake --build build/release -j $(JOBS)
	python3 tools/run_ctest.py package -j $(JOBS)

# What make test had to skip for want of a package.
NEED_PACKAGES = tests/cli/test_embed.py tests/cli/test_extract.py tests/witness/test_witness_ztensor0.py
test-interop: ## run the Python tests that need published packages, and those of robustness
	@tools/run-pytest.sh published tests/interop tests/robustness $(NEED_PACKAGES)

wheel: ## build the Python package with this machine's compiler, and its source archive: build/wheels
	@tools/install-packages.sh python
	@[ -f build/release/build.ninja ] || cmake --preset release -DWEIGHBRIDGE_TESTS=OFF
	cmake --build build/release -j $(JOBS) --target weighbridge weighbridge_library
	@tools/python-environments.sh tests/interop/requirements-python.txt build/venv-python
	@tools/make-wheel.sh build/venv-python/bin/python
	@tools/make-sdist.sh build/venv-python/bin/python

test-python: wheel ## install the wheel where nothing else is, and with NumPy; run its tests
	@tools/test-python.sh build/venv-python "$$(ls -t build/wheels/weighbridge-*-linux_*.whl | head -1)"

test-pythons: wheel ## the same with each of Python 3.10 to 3.13 that is here; and a wheel from the source archive
	@tools/test-pythons.sh
	@tools/test-sdist.sh build/venv-python

wheels: ## build the released wheels by the package ziglang (glibc 2.17, x86-64 and aarch64): build/wheels/released
	@tools/install-packages.sh wheels
	@tools/make-wheels.sh

check-roots: test-packages wheels ## install the Debian package and the released wheels on clean Debian 12, Debian 13 and Ubuntu 24.04; needs root
	python3 tests/package/roots.py build/release build/wheels/released

check-llama: ## what needs llama.cpp, which is compiled for it: files, blocks, splits, texts and greedy ids beside it
	cmake --preset release
	cmake --build build/release -j $(JOBS) --target weighbridge code_blocks
	@tools/python-environments.sh tests/interop/llama-requirements.txt build/venv-llama
	@tools/fetch-vocabularies.sh
	build/venv-llama/bin/python -m pytest -q -p no:cacheprovider tests/interop/test_gguf*.py tests/interop/test_ggml_blocks.py

check-model-signing: ## manifests beside model-signing, the reference of OpenSSF Model Signing, both ways
	cmake --preset release
	cmake --build build/release -j $(JOBS) --target weighbridge
	@tools/python-environments.sh tests/interop/model-signing-requirements.txt build/venv-model-signing
	build/venv-model-signing/bin/python -m pytest -q -rs -p no:cacheprovider tests/interop/test_model_signing.py

check-torch-files: ## files of PyTorch beside PyTorch itself, both ways (5.4 GB, the environment of check-torch)
	cmake --preset release
	cmake --build build/release -j $(JOBS) --target weighbridge
	@tools/python-environments.sh python/ecosystem/requirements.txt build/venv-torch
	@$${TORCH_PYTHON:-build/venv-torch/bin/python} -m pytest -q -rs -p no:cacheprovider tests/interop/test_pytorch.py

check-torch: wheel ## what needs PyTorch (5.4 GB): safetensors' own tests, transformers, sentence-transformers with weighbridge in its place
	@tools/test-torch.sh

check-ray: wheel ## corpora and lakes on Ray, and DuckDB, Polars, Daft, pyarrow (1.1 GB): workers and nodes that end, a lake of a thousand files
	@tools/test-ray.sh

lake: wheel ## make a lake of a thousand model files, and what an audit of it has to find: build/lake
	@rm -rf build/lake build/lake-site
	@build/venv-python/bin/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --target build/lake-site "$$(ls -t build/wheels/weighbridge-*-linux_*.whl | head -1)"
	@PYTHONPATH=build/lake-site build/venv-python/bin/python tools/make_lake.py build/lake

soak: lake ## go over that lake for MINUTES (30) in one process: memory and open files may not grow
	@PYTHONPATH=build/lake-site build/venv-python/bin/python tools/soak.py build/lake --minutes $(or $(MINUTES),30)

test-web: web ## build for the browser; run the npm package under Node, the page in Chromium, and one test of it in Firefox
	@tools/test-web.sh
	@tools/install-packages.sh firefox
	@WEIGHBRIDGE_BROWSER=firefox PAGE_TESTS=keyboard tools/test-web.sh

check-firefox: web ## run all tests of the page in Firefox
	@tools/install-packages.sh firefox
	@WEIGHBRIDGE_BROWSER=firefox tools/test-web.sh

test-fuzz: ## build with clang 16, sanitizers and libFuzzer; run ctest, fuzz each target for FUZZ_SECONDS, find the planted bugs
	cmake --preset fuzz -DWEIGHBRIDGE_FUZZ_SECONDS=$(FUZZ_SECONDS)
	cmake --build build/fuzz -j $(JOBS)
	python3 tools/run_ctest.py fuzz -j $(JOBS)

test-threads: ## the programs with threads under the thread sanitizer; THREADED="base_test io_test": only these
	cmake --preset tsan
	cmake --build build/tsan -j $(JOBS) --target $(or $(THREADED),tests_with_threads)
	python3 tools/run_ctest.py threads -j $(JOBS) -R "^($$(tr ' ' '|' <<<'$(or $(THREADED),.*)'))$$"

test-all-threads:
	cmake --preset tsan
	cmake --build build/tsan -j $(JOBS)
	python3 tools/run_ctest.py tsan -j $(JOBS)
	@WEIGHBRIDGE="$(CURDIR)/build/tsan/weighbridge" tools/run-pytest.sh published tests/cli

test-properties: ## check properties of conversions with 200 random cases each that no run had before
	cmake --preset release
	cmake --build build/release -j $(JOBS) --target convert_test
	RC_PARAMS="max_success=200" build/release/src/convert/convert_test --gtest_brief=1 --gtest_filter='ConvertProperty*:*EveryPair*:Canonical*'

test-malformed:
	cmake --preset release
	cmake --build build/release -j $(JOBS) --target corpus_malformed corpus_test
	build/release/tests/corpus/corpus_malformed 100000
	WEIGHBRIDGE_THOROUGH=1 build/release/tests/corpus/corpus_test --gtest_brief=1

fuzz: setup-check ## fuzz for long: make fuzz FUZZ_SECONDS=600
	@$(MAKE) --no-print-directory test-fuzz

bench: ## build and run the benchmarks, in turns with the peers that are there: BENCH_TURNS=1 for a short try
	@tools/install-packages.sh bench
	@tools/run-bench.sh $(BENCH_ARGUMENTS)

bench-report: ## put the results of the last run into docs/performance.md and docs/charts
	python3 bench/report.py --from build/bench/results

corpus: setup-test ## write the corpus anew from the code that builds it
	cmake --preset release
	cmake --build build/release -j $(JOBS) --target corpus

docs: setup ## write the generated pages of docs/ anew
	@[ -f build/release/build.ninja ] || cmake --preset release -DWEIGHBRIDGE_TESTS=OFF
	cmake --build build/release -j $(JOBS) --target docs
	python3 tools/python_reference.py

reference: ## make the reference of the C++ API: build/reference/index.html
	@tools/install-packages.sh reference
	@mkdir -p build
	@WEIGHBRIDGE_VERSION=$$(sed -n 's/^project(weighbridge VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt) doxygen docs/Doxyfile
	@echo "build/reference/index.html"

docs-site: ## make the documentation a site with search, with the C++ reference if `make reference` made it: build/site/index.html
	@tools/install-packages.sh docs-site
	@tools/python-environments.sh docs/site/requirements.txt build/venv-docs
	@python3 tools/docs_site.py build/venv-docs/bin/mkdocs

unicode: setup-test ## write the tables of Unicode anew from Debian's unicode-data
	python3 tools/generate_unicode_tables.py
	python3 tools/generate_width_table.py

format: ## lay out the sources with clang-format 16
	clang-format-16 -i $(SOURCES)

format-check: ## say which sources clang-format 16 would change
	@clang-format-16 --dry-run --Werror $(SOURCES)

tidy: ## run clang-tidy 16 over the sources
	@tools/install-packages.sh tidy
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
	@umask 022 && cd build/release && cpack -B packages  # CPack writes the umask into a .deb
	@ls -l build/release/packages/*.deb build/release/packages/*.tar.gz

check-reproducible: setup ## build HEAD twice in different folders, once without the compiler cache, and compare every byte of what is released
	@tools/check-reproducible.sh $(REPRODUCIBLE_ARGUMENTS)

web: ## build the page: build/web/site, and the npm package: web/api
	@tools/install-packages.sh web
	@WEB_KINDS="$(WEB_KINDS)" tools/build-web.sh

web-serve: web ## build the page and serve it on the loopback address
	node web/tests/serve.mjs build/web/site

clean: ## remove everything that was built
	rm -rf build
