#!/usr/bin/env bash
# The demo that `make demo` runs: a narrated minute with a real Kubernetes API
# server, a bare Git repository, and gitrollout between them. With --fleet, the demo
# that `make demo-fleet` runs: four clusters with one repository, in two minutes.
#
#   examples/demo.sh                      on a new cluster, removed at the end
#   examples/demo.sh --fleet              one commit in dev, staging and two production clusters
#   examples/demo.sh --context kind-x     on your cluster, in two new namespaces
#   examples/demo.sh --fast               without pauses for reading (or DEMO_PAUSE=0)
#   examples/demo.sh --program FILE       with the program of a release, instead of bin/gitrollout
#   examples/demo.sh --build              build gitrollout and the control plane first
#
# The demo removes its objects, and fails if a stage takes too long.
set -euo pipefail

pause=${DEMO_PAUSE:-1.5}
context=${CONTEXT:-}
program='' build='' fleet=''
while [ $# -gt 0 ]; do
	case "$1" in
	--fast) pause=0 ;;
	--build) build=yes ;;
	--fleet) fleet=yes ;;
	--program) program=$(realpath "${2:?--program needs a file}"); shift ;;
	--context) context=${2:?--context needs a name}; shift ;;
	-h | --help) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 0 ;;
	*) echo "demo: unknown argument $1; see --help" >&2; exit 2 ;;
	esac
	shift
done
[ -z "$fleet" ] || [ -z "$context" ] || { echo "demo: --fleet starts its own clusters, so leave --context out" >&2; exit 2; }

root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/gitrollout-demo.XXXXXX")
remote=$work/shop.git clone=$work/shop
namespaces="example-canary example-blue-green"
reconcilers='' clusters='' created='' builder=''

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
	for log in "$work"/*.log; do
		[ -s "$log" ] || continue
		printf '\nThe last lines of gitrollout'"'"'s log in cluster %s:\n' "$(basename "$log" .log)" >&2
		tail -n 10 "$log" >&2
	done
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
		alive $reconcilers || fail "gitrollout has ended by itself"
		sleep 0.3
	done
	(cd "$clone" && gitrollout get "$1" >&2) || true
	fail "$1 is $now after $3 s, and should be $2"
}

# tag FOLDER TAG changes the image tag in a kustomization of the clone, as an editor would.
tag() {
	local file=$1/kustomization.yaml
	sed "s/newTag: .*/newTag: $2/" "$clone/$file" >"$work/edited" && cat "$work/edited" >"$clone/$file"
	say "(in $file: newTag: $2)"
}

# image APP TAG [FLAG...] waits until the app's stable version has the tag, and no other version has pods. A blue-green
# release keeps old pods for some seconds.
image() {
	local deadline=$((SECONDS + 30)) found=''
	while [ "$SECONDS" -lt "$deadline" ]; do
		found=$(cd "$clone" && gitrollout get "$1" --no-color -o wide "${@:3}")
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

alive() { # PID...
	local pid
	for pid; do kill -0 "$pid" 2>/dev/null || return 1; done
}

# stop terminates processes, and kills them after 10 s. kill succeeds if one of the processes runs.
stop() { # PID...
	kill "$@" 2>/dev/null || return 0
	for _ in $(seq 100); do
		kill -0 "$@" 2>/dev/null || return 0
		sleep 0.1
	done
	kill -9 "$@" 2>/dev/null || true
}

clean_up() {
	local code=$?
	trap - EXIT
	trap '' INT TERM HUP
	[ -z "$builder$reconcilers" ] || stop $builder $reconcilers
	[ -z "$created" ] || kubectl delete namespace $namespaces --ignore-not-found --wait=false >/dev/null 2>&1 || true
	[ -z "$clusters" ] || stop $clusters
	rm -rf "$work"
	exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

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

# start_clusters NAME... starts control planes together, and waits for them. $work/NAME.kubeconfig is a cluster's kubeconfig.
start_clusters() {
	local name deadline=$((SECONDS + 60 * $#))
	[ -x "$bin/localcluster" ] || fail "bin/localcluster is not built; run: make demo"
	for name; do
		"$bin/localcluster" --exit-with-parent --dir "$work/cluster-$name" --kubeconfig "$work/$name.kubeconfig" \
			>"$work/$name.out" 2>&1 &
		clusters+=" $!"
	done
	for name; do
		until grep -q '^ready ' "$work/$name.out"; do
			alive $clusters || fail "a local cluster did not start: $(tail -n 3 "$work"/*.out)"
			[ "$SECONDS" -lt "$deadline" ] || fail "the local cluster was not ready within $((60 * $#)) s"
			sleep 0.1
		done
	done
}

# reconcile CLUSTER [FLAG...] starts gitrollout for a cluster, until the end of the demo.
reconcile() {
	(cd "$clone" && exec gitrollout run --cluster "$1" --interval 1s "${@:2}") >"$work/$1.log" 2>&1 &
	reconcilers+=" $!"
}

# start_repository EXAMPLE... makes the bare repository and a clone with the files of the examples.
start_repository() {
	local example
	git init -q --bare -b main "$remote"
	git clone -q "$remote" "$clone" 2>/dev/null
	git -C "$clone" checkout -q -b main 2>/dev/null || true
	for example; do cp -R "$root/examples/$example/." "$clone/"; done
	rm -f "$clone/README.md"
}

use_cluster() {
	(umask 077 && kubectl --context "$context" config view --minify --raw --flatten >"$work/demo.kubeconfig")
	export KUBECONFIG=$work/demo.kubeconfig
	kubectl get --raw /readyz >/dev/null || fail "the cluster of context $context does not answer"
	for ns in $namespaces; do
		if kubectl get namespace "$ns" >/dev/null 2>&1; then
			fail "namespace $ns exists already in $context: delete it first, the demo removes it at the end"
		fi
	done
	created=yes
}

# ------------------------------------------------------------- four clusters

# transitions prints a line for each new commit of the state branches, with the seconds since the push at $pushed. It
# fails without a new commit.
pushed='' seen=''
transitions() {
	local heads at line
	heads=$(git -C "$remote" for-each-ref --format='%(objectname)' refs/heads/gitrollout/state)
	[ "$heads" != "$seen" ] || return 1
	git -C "$remote" log --reverse --format='%ct %s' $heads --not $seen | while read -r at line; do
		printf '%s%4d s%s  %s\n' "$dim" "$((at - pushed))" "$plain" "${line/ by Dev <dev@example.com>/}"
	done
	seen=$heads
}

# reach SECONDS PATTERN CLUSTER... prints transitions until each cluster's line of gitrollout fleet matches the pattern.
reach() {
	local found='' name missing='all' deadline=$((SECONDS + $1))
	while [ -n "$missing" ]; do
		if transitions || [ -z "$found" ]; then
			found=$(cd "$clone" && gitrollout fleet shop --no-color -o wide) || fail "gitrollout fleet has failed"
			missing=''
			for name in "${@:3}"; do grep -qE "^ *(.*, )?$name(, [^:]*)?: $2" <<<"$found" || missing+=" $name"; done
			continue
		fi
		alive $reconcilers $clusters || fail "gitrollout or a control plane has ended by itself"
		[ "$SECONDS" -lt "$deadline" ] || { printf '%s\n' "$found" >&2; fail "after $1 s, \"$2\" is missing in$missing"; }
		sleep 0.2
	done
}

# push shows and runs a push, from which on transitions count the seconds.
push() {
	transitions || true
	pushed=$(date +%s)
	run "$@" git push -q -u origin main
}

play_fleet() {
	local all="dev staging prod-eu prod-us" base=apps/shop/base healthy='Healthy [^ ]*rollouts-demo' soaked='[^:]*$' name
	say "One commit, four clusters: dev, staging, and two in production. What follows is real:"
	say "Git, four Kubernetes API servers and their Deployment controllers; only the containers"
	say "are simulated. Ctrl-C ends it and cleans up."
	breathe
	start_clusters $all
	start_repository fleet

	chapter "1. One repository, and a gitrollout in each cluster. No cluster has another's credentials"
	run grep -v "'^#'" .gitrollout/fleet.yaml
	push git add . '&&' git commit -qm "'shop: blue'" '&&'
	for name in $all; do
		say "${dim}\$ gitrollout run --cluster $name --interval 1s &$plain"
		KUBECONFIG=$work/$name.kubeconfig reconcile "$name" --dashboard-address '' --metrics-address ''
	done
	reach 120 "$healthy:blue $soaked" $all
	run gitrollout fleet

	chapter "2. One commit: a new tag in the base of all clusters"
	tag $base yellow
	run git commit -qam "'shop: yellow'"
	run gitrollout plan --base origin/main --no-diff '|' grep -o "'enters stage[^;]*'"
	push
	reach 60 "$healthy:yellow " dev
	run gitrollout fleet
	reach 60 "$healthy:yellow " staging
	run gitrollout fleet
	reach 60 "$healthy:yellow " prod-us
	run gitrollout fleet
	reach 60 "$healthy:yellow $soaked" $all
	run gitrollout fleet

	chapter "3. A version that does not start reaches only dev, which rejects it"
	tag $base red-crash
	push git commit -qam "'shop: red'" '&&'
	reach 90 'Degraded ' dev
	reach 30 "$healthy:yellow .*waits for dev " staging
	run gitrollout fleet
	push git revert --no-edit HEAD '>/dev/null &&'
	reach 60 "$healthy:yellow " $all

	chapter "4. git revert: all clusters go back at once, without waiting for each other"
	push git revert --no-edit HEAD~2 '>/dev/null &&'
	reach 60 "$healthy:blue " $all
	run gitrollout fleet
	for name in $all; do KUBECONFIG=$work/$name.kubeconfig image shop blue --cluster "$name"; done
	say "All pods in all clusters are blue again, after $SECONDS s in all. docs/stages.md has the settings."
}

if [ -n "$fleet" ]; then
	play_fleet
	exit
fi

# ----------------------------------------------------------------- the play

say "Push to release, merge to promote, revert to roll back. What follows is real: Git,"
say "a Kubernetes API server and its Deployment controller; on the local cluster only"
say "the containers are simulated. Ctrl-C ends it and cleans up."
breathe

if [ -n "$context" ]; then
	use_cluster
else
	start_clusters demo
	export KUBECONFIG=$work/demo.kubeconfig
fi
start_repository canary blue-green

chapter "1. A repository with two apps, shop and checkout, and gitrollout running beside it"
run git add . '&&' git commit -qm "'shop and checkout, both blue'" '&&' git push -q -u origin main
say "${dim}\$ gitrollout run --interval 1s &$plain"
reconcile demo
await shop Healthy 60
await checkout Healthy 60
run gitrollout list

chapter "2. Release: push. One pod of five becomes yellow, then the release waits"
tag apps/shop/overlays/demo yellow
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
tag apps/shop/overlays/demo red
run git commit -qam "'shop: red'" '&&' git push -q
await shop Paused 60
pods example-canary shop
run git revert --no-edit HEAD '>/dev/null &&' git push -q
await shop Healthy 60
image shop yellow
pods example-canary shop
say "Red is gone. The four yellow pods beside it served all the while."

chapter "4. Blue-green: three green pods start beside the blue ones; the Service stays"
tag apps/checkout/overlays/demo green
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
