#!/usr/bin/env bash
# The outside referee of compat/torch: takes the C++ API tests of Debian's pytorch 1.13.1 source package, compiles them
# one file at a time against this tree and runs them. Prints a line for each file and a sum. Nothing of the package is
# kept outside of the work folder.
#   scripts/libtorch_tests.sh BUILD [FILE...]     BUILD: a built preset, e.g. build/release; FILE: e.g. tensor autograd
# A test that does not compile is replaced by one that fails, so that the rest of its file can run; one that crashes or
# does not end counts as failed. Environment: VESTA_REFEREE_WORK, the work folder (default BUILD/referee);
# VESTA_REFEREE_JOBS, files at a time (default: one a core).
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.." || exit 1
root=$PWD
build=$(readlink -f "${1:?usage: libtorch_tests.sh BUILD [FILE...]}")
shift
work=${VESTA_REFEREE_WORK:-$build/referee}
mkdir -p "$work"
work=$(readlink -f "$work")

# The files that the task names; the others test what is not offered (CUDA, jit, dispatcher).
all="any autograd dataloader enum expanding-array fft functional grad_mode init integration memory misc module
  moduledict modulelist modules nn_utils operations optim ordered_dict parameterdict parameterlist rnn sequential
  serialize special static tensor tensor_flatten tensor_indexing tensor_options transformer"
(($#)) || set -- $all

fetch() { # the package's upstream archive, through apt with lists of its own
  local apt=$work/apt
  mkdir -p "$apt/parts" "$apt/lists/partial"
  cat >"$apt/parts/src.sources" <<SOURCES
Types: deb-src
URIs: http://deb.debian.org/debian
Suites: bookworm
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
SOURCES
  local options=(-qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$apt/parts" -o Dir::State::Lists="$apt/lists")
  (cd "$apt" && apt-get "${options[@]}" update && apt-get "${options[@]}" source --download-only --tar-only pytorch=1.13.1+dfsg-4) \
    >"$work/apt.log" 2>&1
  mkdir -p "$work/source"
  tar -C "$work/source" --strip-components=1 -xf "$apt"/pytorch_1.13.1+dfsg.orig.tar.xz --wildcards \
    '*/test/cpp/api/*' '*/test/cpp/common/*'
}
if [[ ! -d $work/source/test/cpp/api ]]; then
  fetch || { echo "libtorch_tests: could not get the pytorch source package; see $work/apt.log" >&2; exit 1; }
fi
api=$work/source/test/cpp/api
# One helper looks into libtorch's private tensor fields; only inference_mode.cpp, which is not among the files, uses it.
sed -i '/^inline void assert_tensor_creation_meta/,/^}/d' "$api/support.h"

# libtorch's inner headers are not offered. What includes one gets an empty file in its place, also where a libtorch is
# installed, and does not compile where it needs what is in it.
grep -rhoE '#include <(torch|ATen|c10|caffe2)/[^>]*>' "$api"/*.cpp "$api"/*.h | sed -E 's/.*<(.*)>/\1/' | sort -u |
  while read -r header; do
    [[ -e $root/compat/torch/include/$header ]] && continue
    mkdir -p "$work/missing/$(dirname "$header")" && : >"$work/missing/$header"
  done

flags=(-std=c++20 -O0 -w -I"$root/compat/torch/include" -I"$root/include" -I"$build/gen/include" -I"$work/source" -I"$work/missing")
libs=(${VESTA_REFEREE_OBJECTS:-} "$build/lib/libvesta.a" -lgtest -lgtest_main -lz -ldl -lpthread)
nm -A --defined-only /usr/lib/gcc/x86_64-linux-gnu/*/libbacktrace.a >/dev/null 2>&1 && libs+=(-lbacktrace)

# Most of the time goes into the headers, so they are compiled once.
headers=$work/headers.h
printf '#include <gtest/gtest.h>\n#include <torch/torch.h>\n#include <test/cpp/api/support.h>\n' >"$headers"
g++ "${flags[@]}" -x c++-header "$headers" -o "$headers.gch" || exit 1
g++ "${flags[@]}" -include "$headers" -c "$api/support.cpp" -o "$work/support.o" || exit 1
libs=("$work/support.o" "${libs[@]}")

# Puts a failing body into each test of file $1 that an error message of $2 points at; prints how many.
blame() {
  awk -v name="$(basename "$1")" -v out="$1.new" '
    NR == FNR {
      if ($0 ~ /error:|required from|in expansion of macro|required by/) {
        n = split($1, part, ":")
        base = part[1]; sub(/.*\//, "", base)
        if (base == name) bad[part[2]] = 1
      }
      next
    }
    { line[FNR] = $0; total = FNR }
    END {
      for (i = 1; i <= total; ++i) {
        if (line[i] !~ /^[A-Za-z]/ || line[i] ~ /^(namespace|using|extern)/) { print line[i] > out; continue }
        last = i
        if (line[i] !~ /[;}][ \t]*$/) while (last < total && line[last] !~ /^}/) ++last
        hit = 0
        for (j = i; j <= last; ++j) if (j in bad) hit = 1
        if (!hit || line[i] ~ /DOES_NOT_COMPILE/) { for (j = i; j <= last; ++j) print line[j] > out }
        else {
          # The same number of lines, so that the next messages point right. A helper goes; tests that use it follow.
          head = ""
          if (line[i] ~ /^TEST(_F)?\(/) {
            for (j = i; j <= last && head !~ /\{/; ++j) head = head line[j]
            sub(/\{.*/, "", head)
            print head "{ FAIL() << \"DOES_NOT_COMPILE\"; }" > out
          } else print "" > out
          for (j = i + 1; j <= last; ++j) print "" > out
          ++count
        }
        i = last
      }
      print count + 0
    }' "$2" "$1"
  mv "$1.new" "$1"
}

# One file: a line "passed failed uncompiled" in its .result.
run_file() {
  local file=$1 log=$work/$1.log source=$work/$1.cpp count text pass ok=0 done_tests= code ran
  cp "$api/$file.cpp" "$source"
  count=$(grep -cE '^TEST(_F)?\(' "$source")
  printf '0 %d %d\n' "$count" "$count" >"$work/$file.result"
  for _ in $(seq 1 12); do
    if g++ "${flags[@]}" -fmax-errors=0 -I"$api" -include "$headers" -c "$source" -o "$work/$file.o" 2>"$log.errors"; then
      ok=1
      break
    fi
    (($(blame "$source" "$log.errors"))) || break
  done
  text=$(grep -c DOES_NOT_COMPILE "$source")
  ((ok)) && g++ "$work/$file.o" "${libs[@]}" -o "$work/$file" 2>"$log.link" || return
  # A crash ends the program: it is started again without the tests that have run.
  : >"$log"
  for _ in $(seq 1 40); do
    (cd "$work" && timeout 300 "./$file" --gtest_color=no --gtest_filter="*-$done_tests") >"$log.run" 2>&1
    code=$?
    cat "$log.run" >>"$log"
    ((code == 0 || code == 1)) && grep -q '^\[==========\].*ran' "$log.run" && break
    ran=$(sed -nE 's/^\[ RUN      \] ([^ ]+).*/\1/p' "$log.run" | paste -sd:)
    [[ $ran ]] || break
    done_tests+=${done_tests:+:}$ran
  done
  # A type of libtorch's whose static data outlives main may end the run badly: what passed has passed.
  pass=$(grep -cE '^\[       OK \]' "$log")
  printf '%d %d %d\n' "$pass" $((count - pass)) "$text" >"$work/$file.result"
}

jobs=${VESTA_REFEREE_JOBS:-$(nproc)}
running=0
for file in "$@"; do
  ((running < jobs)) || { wait -n; ((--running)); }
  run_file "$file" &
  ((++running))
done
wait

sum_pass=0 sum_fail=0 sum_text=0
printf '%-18s %7s %7s %16s\n' file passed failed 'does not compile'
for file in "$@"; do
  read -r pass fail text <"$work/$file.result"
  printf '%-18s %7d %7d %16d\n' "$file" "$pass" "$fail" "$text"
  ((sum_pass += pass, sum_fail += fail, sum_text += text))
done
printf '%-18s %7d %7d %16d\n' sum "$sum_pass" "$sum_fail" "$sum_text"
printf '%d passed, %d failed\n' "$sum_pass" "$sum_fail"
