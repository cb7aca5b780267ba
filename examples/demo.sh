#!/usr/bin/env bash
# The demo that `make demo` runs: a narrated minute with a real Kubernetes API
# server, a bare Git repository, and gitrollout between them.
#
#   examples/demo.sh                      on a new cluster, removed at the end
#   examples/demo.sh --context kind-x     on your cluster, in two new namespaces
#   examples/demo.sh --fast               without pauses for reading (or DEMO_PAUSE=0)
#   examples/demo.sh --program FILE       with the program of a release, instead of bin/gitrollout
#   examples/demo.sh --build              build gitrollout and the control plane first
#
# The demo removes its objects, and fails if a stage takes too long.
set -euo pipefail

pause=${DEMO_PAUSE:-1.5}
context=${CONTEXT:-}
program='' build=''
while [ $# -gt 0 ]; do
	case "$1" in
	--fast) pause=0 ;;
	--build) build=yes ;;
	--program) program=$(realpath "${2:?--program needs a file}"); shift ;;
	--context) context=${2:?--context needs a name}; shift ;;
	-h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
	*) echo "demo: unknown argument $1; see --help" >&2; exit 2 ;;
	esac
	shift
done

root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/gitrollout-demo.XXXXXX")
remote=$work/shop.git clone=$work/shop log=$work/gitrollout.log
namespaces="example-canary example-blue-green"
reconciler='' cluster='' created='' builder=''

# If no other target has built the control plane, the demo builds its own programs. Without inlining and debug
# information, a first build needs two thirds of the time.
bin=$root/bin
if [ -n "$build" ] && [ -z "$context" ] && [ ! -x "$bin/localcluster" ]; then
	bin=$root/bin/demo
	export CGO_ENABLED=0
	export GOFLAGS="${GOFLAGS:-} '-gcflags=all=-l -dwarf=false' '-ldflags=-s -w'"
fi
# The programs in bin come first in PATH. KUBECONFIG names the cluster, and the clone's
# origin the repository.
export PATH="$bin:$PATH"
if [ -n "$program" ]; then
	mkdir "$work/bin" && ln -s "$program" "$work/bin/gitrollout"
	export PATH="$work/bin:$PATH"
fi

# The demo ignores your settings, and changes none.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0
export GIT_AUTHOR_NAME=Dev GIT_AUTHOR_EMAIL=dev@example.com
export GIT_COMMITTER_NAME=Dev GIT_COMMITTER_EMAIL=dev@example.com

# ------------------------------------------------------------------ talking

if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; else bold='' dim='' plain=''; fi

chapter() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; breathe; }
say() { printf '%s\n' "$*"; }
breathe() { [ "$pause" = 0 ] || sleep "$pause"; }

# run shows a command and runs it in the clone.
run() {
	printf '%s$ %s%s\n' "$dim" "$*" "$plain"
	(cd "$clone" && eval "$@")
	breathe
}

fail() {
	printf '\ndemo: %s\n' "$*" >&2
	if [ -s "$log" ]; then
		printf '\nThe last lines of gitrollout'"'"'s log:\n' >&2
		tail -n 20 "$log" >&2
	fi
	exit 1
}

# ----------------------------------------------------------------- looking

# phase prints where an app stands, "none" before there is a record of it.
phase() {
	local found
	found=$(cd "$clone" && gitrollout get "$1" -o json 2>/dev/null | sed -n 's/^.*"phase": *"\([A-Za-z]*\)".*$/\1/p' | head -n 1) || true
	printf '%s' "${found:-none}"
}

# await APP PHASE SECONDS waits until the app's phase is PHASE.
await() {
	local deadline=$((SECONDS + $3)) now=''
	while [ "$SECONDS" -lt "$deadline" ]; do
		now=$(phase "$1")
		[ "$now" = "$2" ] && return
		kill -0 "$reconciler" 2>/dev/null || fail "gitrollout has ended by itself"
		sleep 0.3
	done
	(cd "$clone" && gitrollout get "$1" >&2) || true
	fail "$1 is $now after $3 s, and should be $2"
}

# tag APP TAG changes the app's image tag in the clone, as an editor would.
tag() {
	local file=apps/$1/overlays/demo/kustomization.yaml
	sed "s/newTag: .*/newTag: $2/" "$clone/$file" >"$work/edited" && cat "$work/edited" >"$clone/$file"
	say "(in $file: newTag: $2)"
}

# image APP TAG waits until the app's stable version has the tag, and no other version has pods. A blue-green release keeps
# old pods for some seconds.
image() {
	local deadline=$((SECONDS + 30)) found=''
	while [ "$SECONDS" -lt "$deadline" ]; do
		found=$(cd "$clone" && gitrollout get "$1" --no-color -o wide)
		grep -q "^ *Stable .*rollouts-demo:$2 " <<<"$found" &&
			[ "$(grep -cE '^ +[a-z]+ +[0-9a-z]{8,10} +[0-9]+/[0-9]+ ready' <<<"$found")" = 1 ] && return
		sleep 0.3
	done
	printf '%s\n' "$found" >&2
	fail "the pods of $1 should all run tag $2"
}

# pods NAMESPACE APP shows the pods with their template's hash.
pods() {
	if command -v kubectl >/dev/null; then
		run kubectl -n "$1" get pods -L pod-template-hash
	else
		run gitrollout get "$2"
	fi
}

# ------------------------------------------------------------------- set-up

stop() { # PID
	kill "$1" 2>/dev/null || return 0
	for _ in $(seq 100); do
		kill -0 "$1" 2>/dev/null || return 0
		sleep 0.1
	done
	kill -9 "$1" 2>/dev/null || true
}

clean_up() {
	local code=$?
	trap - EXIT INT TERM
	[ -z "$builder" ] || stop "$builder"
	[ -z "$reconciler" ] || stop "$reconciler"
	[ -z "$created" ] || kubectl delete namespace $namespaces --ignore-not-found --wait=false >/dev/null 2>&1 || true
	[ -z "$cluster" ] || stop "$cluster"
	rm -rf "$work"
	exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# ---------------------------------------------------------------- building

# start_build NAME FOLDER PACKAGE builds $bin/NAME in the background. total is the number of packages to build.
start_build() {
	built=$work/built-$1 began=$SECONDS
	total=$(cd "$root/$2" && ${GO:-go} list -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' "$3" | wc -l)
	(cd "$root/$2" && exec ${GO:-go} build -v -o "$bin/$1" "$3") >"$built" 2>&1 &
	builder=$!
}

# await_build WHAT NEXT shows the progress of the build until its end. Without a terminal, it prints a line every 30 s.
await_build() {
	local n line shown=-30
	while kill -0 "$builder" 2>/dev/null; do
		n=$(wc -l <"$built")
		line="Building $1: $n of $((total)) packages"
		[ "$n" -lt 20 ] || line+=", about $(((SECONDS - began) * (total - n) / n / 60 + 1)) min left"
		if [ -t 1 ]; then
			printf '\r\e[K%s. Next: %s.' "$line" "$2"
		elif [ "$((SECONDS - shown))" -ge 30 ] && [ "$total" -gt 0 ]; then
			say "$line. Next: $2."
			shown=$SECONDS
		fi
		sleep 1
	done
	[ ! -t 1 ] || printf '\r\e[K'
	wait "$builder" || fail "$1 was not built: $(tail -n 20 "$built")"
	builder=''
}

# simulated plays the canary's script on the simulator.
simulated() {
	chapter "While the control plane builds: a release on the simulator, with the same engine"
	say "${dim}\$ gitrollout simulate examples/canary/release.txtar --dir examples/canary$plain"
	gitrollout simulate "$root/examples/canary/release.txtar" --dir "$root/examples/canary" | while IFS= read -r line; do
		say "$line"
		[ "$pause" = 0 ] || sleep 0.4
	done
	say ""
}

if [ -n "$build" ]; then
	start_build gitrollout . ./cmd/gitrollout
	await_build gitrollout "a release on the simulator"
	if [ -z "$context" ]; then
		start_build localcluster internal/localcluster .
		[ "$total" -lt 100 ] || simulated
		await_build "a Kubernetes control plane" "the demo"
	fi
fi
command -v gitrollout >/dev/null || fail "bin/gitrollout is not built; run: make demo"
[ -z "$context" ] || command -v kubectl >/dev/null || fail "kubectl is not in the PATH: a demo in your own cluster needs it"

start_cluster() {
	[ -x "$bin/localcluster" ] || fail "bin/localcluster is not built; run: make demo"
	"$bin/localcluster" --dir "$work/cluster" --kubeconfig "$work/kubeconfig" >"$work/cluster.out" 2>&1 &
	cluster=$!
	for _ in $(seq 600); do
		grep -q '^ready ' "$work/cluster.out" && break
		kill -0 "$cluster" 2>/dev/null || fail "the local cluster did not start: $(tail -n 3 "$work/cluster.out")"
		sleep 0.1
	done
	grep -q '^ready ' "$work/cluster.out" || fail "the local cluster was not ready within a minute"
	export KUBECONFIG=$work/kubeconfig
}

use_cluster() {
	(umask 077 && kubectl --context "$context" config view --minify --raw --flatten >"$work/kubeconfig")
	export KUBECONFIG=$work/kubeconfig
	kubectl get --raw /readyz >/dev/null || fail "the cluster of context $context does not answer"
	for ns in $namespaces; do
		if kubectl get namespace "$ns" >/dev/null 2>&1; then
			fail "namespace $ns exists already in $context: delete it first, the demo removes it at the end"
		fi
	done
	created=yes
}

# ----------------------------------------------------------------- the play

say "Push to release, merge to promote, revert to roll back. What follows is real: Git,"
say "a Kubernetes API server and its Deployment controller; on the local cluster only"
say "the containers are simulated. Ctrl-C ends it and cleans up."
breathe

if [ -n "$context" ]; then use_cluster; else start_cluster; fi

git init -q --bare -b main "$remote"
git clone -q "$remote" "$clone" 2>/dev/null
git -C "$clone" checkout -q -b main 2>/dev/null || true
cp -R "$root/examples/canary/." "$root/examples/blue-green/." "$clone/"
rm -f "$clone/README.md"

chapter "1. A repository with two apps, shop and checkout, and gitrollout running beside it"
run git add . '&&' git commit -qm "'shop and checkout, both blue'" '&&' git push -q -u origin main
say "${dim}\$ gitrollout run --interval 1s &$plain"
(cd "$clone" && exec gitrollout run --interval 1s) >"$log" 2>&1 &
reconciler=$!
await shop Healthy 60
await checkout Healthy 60
run gitrollout list

chapter "2. Release: push. One pod of five becomes yellow, then the release waits"
tag shop yellow
run git commit -qam "'shop: yellow'" '&&' git push -q
await shop Paused 60
run gitrollout get shop

chapter "   Promote: merge the branch that gitrollout has prepared"
run git fetch -q
run git log -1 --format=%B origin/gitrollout/promote/demo/shop
run git show origin/gitrollout/promote/demo/shop:.gitrollout/demo/promote/shop.yaml
run git merge -q --no-ff --no-edit origin/gitrollout/promote/demo/shop '&&' git push -q
await shop Healthy 90
image shop yellow
run gitrollout get shop

chapter "3. Roll back: push a bad version, revert it while it is at 20 %"
tag shop red
run git commit -qam "'shop: red'" '&&' git push -q
await shop Paused 60
pods example-canary shop
run git revert --no-edit HEAD '>/dev/null &&' git push -q
await shop Healthy 60
image shop yellow
pods example-canary shop
say "Red is gone. The four yellow pods beside it served all the while."

chapter "4. Blue-green: three green pods start beside the blue ones; the Service stays"
tag checkout green
run git commit -qam "'checkout: green'" '&&' git push -q
await checkout Paused 60
run gitrollout get checkout
if command -v kubectl >/dev/null; then run kubectl -n example-blue-green get service checkout checkout-preview -o wide; fi
say "Merge the promotion, and the Service selects green:"
run git fetch -q '&&' git merge -q --no-ff --no-edit origin/gitrollout/promote/demo/checkout '&&' git push -q
await checkout Healthy 90
image checkout green
run gitrollout get checkout

chapter "What happened is in Git, on a branch that only gitrollout writes"
run git fetch -q '&&' git log --oneline origin/gitrollout/state/demo
say ""
say "That was all. To try it on a repository of your own: README.md, Getting started."
