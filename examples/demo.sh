#!/usr/bin/env bash
# The demo that `make demo` runs: a narrated minute with a real Kubernetes API
# server, a bare Git repository, and gitrollout between them.
#
#   examples/demo.sh                      on a new cluster, removed at the end
#   examples/demo.sh --context kind-x     on your cluster, in two new namespaces
#   examples/demo.sh --fast               without pauses for reading (or DEMO_PAUSE=0)
#   examples/demo.sh --program FILE       with the program of a release, instead of bin/gitrollout
#
# The demo removes its objects, and fails if a stage takes too long.
set -euo pipefail

pause=${DEMO_PAUSE:-1.5}
context=${CONTEXT:-}
program=
while [ $# -gt 0 ]; do
	case "$1" in
	--fast) pause=0 ;;
	--program) program=$(realpath "${2:?--program needs a file}"); shift ;;
	--context) context=${2:?--context needs a name}; shift ;;
	-h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
	*) echo "demo: unknown argument $1; see --help" >&2; exit 2 ;;
	esac
	shift
done

root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/gitrollout-demo.XXXXXX")
remote=$work/shop.git clone=$work/shop log=$work/gitrollout.log
namespaces="example-canary example-blue-green"
reconciler='' cluster='' created=''

# The programs in bin come first in PATH. KUBECONFIG names the cluster, and the clone's
# origin the repository.
export PATH="$root/bin:$PATH"
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

# image NAMESPACE TAG waits until all pods that are not being deleted run one tag. A
# blue-green release keeps old pods for some seconds.
image() {
	local deadline=$((SECONDS + 30)) tags=''
	while [ "$SECONDS" -lt "$deadline" ]; do
		tags=$(kubectl -n "$1" get pods -o go-template='{{range .items}}{{if not .metadata.deletionTimestamp}}{{(index .spec.containers 0).image}}{{"\n"}}{{end}}{{end}}' | sort -u)
		[ "$tags" = "argoproj/rollouts-demo:$2" ] && return
		sleep 0.3
	done
	fail "the pods of $1 run $(echo $tags), and should all run tag $2"
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
	[ -z "$reconciler" ] || stop "$reconciler"
	[ -z "$created" ] || kubectl delete namespace $namespaces --ignore-not-found --wait=false >/dev/null 2>&1 || true
	[ -z "$cluster" ] || stop "$cluster"
	rm -rf "$work"
	exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

for name in gitrollout kubectl; do
	command -v "$name" >/dev/null || fail "bin/$name is not built; run: make demo"
done

start_cluster() {
	[ -x "$root/bin/localcluster" ] || fail "bin/localcluster is not built; run: make demo"
	"$root/bin/localcluster" --dir "$work/cluster" --kubeconfig "$work/kubeconfig" >"$work/cluster.out" 2>&1 &
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
image example-canary yellow
run gitrollout get shop

chapter "3. Roll back: push a bad version, revert it while it is at 20 %"
tag shop red
run git commit -qam "'shop: red'" '&&' git push -q
await shop Paused 60
run kubectl -n example-canary get pods -L pod-template-hash
run git revert --no-edit HEAD '>/dev/null &&' git push -q
await shop Healthy 60
image example-canary yellow
run kubectl -n example-canary get pods -L pod-template-hash
say "Red is gone. The four yellow pods beside it served all the while."

chapter "4. Blue-green: three green pods start beside the blue ones; the Service stays"
tag checkout green
run git commit -qam "'checkout: green'" '&&' git push -q
await checkout Paused 60
run gitrollout get checkout
run kubectl -n example-blue-green get service checkout checkout-preview -o wide
say "Merge the promotion, and the Service selects green:"
run git fetch -q '&&' git merge -q --no-ff --no-edit origin/gitrollout/promote/demo/checkout '&&' git push -q
await checkout Healthy 90
image example-blue-green green
run gitrollout get checkout

chapter "What happened is in Git, on a branch that only gitrollout writes"
run git fetch -q '&&' git log --oneline origin/gitrollout/state/demo
say ""
say "That was all. To try it on a repository of your own: README.md, Getting started."
