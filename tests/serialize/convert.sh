#!/bin/sh
# `vesta convert` through every format and back gives the bytes of the first file. Argument: the vesta program.
set -eu
vesta=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
# numpy.save of an array of int16: 64 * 2 bytes of magic and header, then 1, 2, 3, -1.
text="{'descr': '<i2', 'fortran_order': False, 'shape': (2, 2), }"
printf '\223NUMPY\001\000v\000%-117s\n' "$text" >first.npy
printf '\001\000\002\000\003\000\377\377' >>first.npy
"$vesta" convert first.npy a.npz --compress
"$vesta" convert a.npz b.safetensors
"$vesta" convert b.safetensors c.pt
"$vesta" convert c.pt last.npy
cmp first.npy last.npy
"$vesta" inspect c.pt --json | grep -q '"name":"0","dtype":"int16","shape":\[2,2\],"bytes":8'
if "$vesta" convert c.pt c.txt 2>message; then exit 1; fi
grep -q "the ending of 'c.txt'" message
if "$vesta" inspect message 2>/dev/null; then exit 1; fi
