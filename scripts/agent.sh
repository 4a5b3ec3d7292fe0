#!/bin/sh
# Starts the agent with the kubelet's flags: scripts/agent.sh FLAGS...   (deno task agent FLAGS...)
#
# The agent binds /proc, /sys and the control groups below DENOLET_RUN by itself (mod/app/private_mounts.ts). What it may
# do is the permission set "agent" in deno.json: reading and writing are not narrowed to directories this way, as they
# are in dist/kubelet (docs/permissions.md); network is open for probes of any pod; programs, environment and system
# facts are named one by one.
#
# DENOLET_RUN   where to bind them (default /run/denolet); two agents may share it
# DENOLET_DENO  the deno to run (default: the one in PATH)
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
run=${DENOLET_RUN:-/run/denolet}
deno=${DENOLET_DENO:-}
# npm's `deno` is a script around the program; the program itself must get our signals
[ -n "$deno" ] || deno=$(deno eval --no-config 'console.log(Deno.execPath())') || {
  echo "agent.sh: no deno in PATH; set DENOLET_DENO to its path" >&2
  exit 1
}

if [ "$(id -u)" = 0 ]; then
  mkdir -p "$run"
  # the process must be called kubelet: the kernel takes the name from the file's
  [ "$(readlink "$run/kubelet" || true)" = "$deno" ] || ln -sfn "$deno" "$run/kubelet"
  deno=$run/kubelet
fi
# One file instead of some 500 modules takes 12 MiB less and starts sooner: "deno task bundle" makes it. It is used only
# while no source is newer.
main=$here/dist/kubelet.js
newer() {
  find "$here/main.ts" "$here/deno.json" "$here/cri" "$here/managers" "$here/mod" \
    -type f ! -name '*_test.ts' -newer "$main" -print -quit
}
if [ ! -f "$main" ] || [ -n "$(newer)" ]; then
  main=$here/main.ts
fi
# The agent does little work and should stay small. V8: a small young generation, but not of the least size, which is
# collected 45 times for one scrape of 50 pods; no third compiler (Maglev is fast enough; Turbofan alone takes 10 MiB),
# and Maglev only for what really runs often, one function at a time (what it allocates meanwhile stays in malloc's
# arena: 8 MiB). The task "bundle" takes these flags from here, as it runs the bundle once: Deno keeps the compiled code,
# and a start that must compile takes 30 MiB more. The agent itself collects garbage after much work (heap_care.ts).
# malloc: one arena for all threads; what is free goes back to the system, and what compilers take (8 to 32 KiB at once)
# stands for itself, else a burst of pods leaves 8 MiB of holes.
export MALLOC_ARENA_MAX=1 MALLOC_TRIM_THRESHOLD_=65536 MALLOC_MMAP_THRESHOLD_=8192
exec "$deno" run --quiet --no-prompt --v8-flags=--expose-gc,--optimize-for-size,--min-semi-space-size=2,--max-semi-space-size=4,--no-turbofan,--concurrent-maglev-max-threads=1,--invocation-count-for-maglev=2000 \
  --config "$here/deno.json" -P=agent "$main" "$@"
