#!/bin/sh
# The native kernel under AddressSanitizer and UndefinedBehaviorSanitizer: builds it apart from the installed one, runs
# the engines' tests with it, and fails on any report. Leaks are not looked for: Python itself keeps memory at its end.
set -eu
cd "$(dirname "$0")/../.."
python=$PWD/.venv/bin/python
build=$PWD/build/sanitize

"$python" -m pip install --quiet --constraint constraints.txt --upgrade --target "$build/tools" nanobind
nanobind=$(PYTHONPATH="$build/tools" "$python" -m nanobind --cmake_dir)
cmake -S . -B "$build" -DPARITYLAB_SANITIZE=ON -DPython_EXECUTABLE="$python" -Dnanobind_DIR="$nanobind" >"$build/log"
cmake --build "$build" >>"$build/log"

# Python is not built with sanitizers: their runtimes, and the library that throws exceptions, must be loaded first.
runtimes=$(for library in asan ubsan stdc++; do c++ -print-file-name="lib$library.so"; done)
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1
export PYTHONPATH="$PWD/tests" PARITYLAB_SANITIZED="$build"
# The processes of pytest itself need no sanitizer; a report ends the one that runs the tests.
tests() { LD_PRELOAD=$(echo $runtimes) "$python" -m pytest -p faults.sanitized "$@"; }
# At the extremes of what is accepted, one at a time, and through the C interface.
tests -n 0 -m "long or not long" tests/test_native_sizes.py tests/test_c_interface.py
tests -k "native or lanes or setup" "$@" \
    tests/test_native_kernel.py tests/test_native_pool.py tests/test_native_problems.py tests/test_native_outputs.py tests/test_engines.py \
    tests/test_oracle_agreement.py tests/test_order_of_sums.py tests/faults/test_fuzz.py
