#!/usr/bin/env bash
# Source rules that a compiler does not check. Prints each offending line; fails if there is one.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.." || exit 1
bad=0

rule() { # rule MESSAGE PATTERN FILES...: no line of FILES may match; comment lines do not count
  local message=$1 pattern=$2 found
  shift 2
  (($#)) || return 0
  found=$(grep -nHE "$pattern" "$@" | grep -vE '^[^:]+:[0-9]+:[[:space:]]*//')
  if [[ $found ]]; then
    printf 'rule: %s\n%s\n' "$message" "$found" >&2
    bad=1
  fi
}

mapfile -t own < <(find src include -type f \( -name '*.cpp' -o -name '*.h' \) | LC_ALL=C sort)
mapfile -t headers < <(printf '%s\n' "${own[@]}" | grep '\.h$')
mapfile -t not_config < <(printf '%s\n' "${own[@]}" | grep -v '^src/base/config')
mapfile -t not_printers < <(printf '%s\n' "${own[@]}" | grep -vE '^src/(compile/print|kernels/templates)/')

rule 'the environment is read in src/base/config only' '\b(secure_)?getenv *\(|\benviron\b' "${not_config[@]}"
rule 'kernel text lives in kernels/templates, printers in compile/print' \
  '__global__|__kernel\b|\bthreadIdx\b|\bget_global_id\b|\[\[thread_position_in_grid\]\]' "${not_printers[@]}"
rule 'headers do not include iostream, regex, future or filesystem: 0.7 s and more in each file' \
  '^ *# *include *<(iostream|regex|future|filesystem)>' "${headers[@]}"
rule 'owners are Ref or unique_ptr' '\bshared_ptr *<|\bmake_shared\b' "${own[@]}"
rule 'the library neither aborts nor exits' '(^|[;{}] *|  )(::|std::)?(abort|quick_exit|_Exit|terminate) *\(' "${own[@]}"

for header in "${headers[@]}"; do
  if ! grep -q '^#pragma once' "$header"; then
    printf 'rule: a header starts with #pragma once\n%s\n' "$header" >&2
    bad=1
  fi
done
while IFS= read -r file; do
  printf 'rule: name the concept, not utils\n%s\n' "$file" >&2
  bad=1
done < <(find src include tests tools cli examples bench -iname '*util*')
exit $bad
