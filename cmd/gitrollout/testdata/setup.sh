# Makes origin.git, a bare repository, and work, a working copy of it: the
# fixture with version v1 of shop, and a second commit with v2. What the
# reconciler would have recorded is written by record.
set -e

release() { # of the files in the current folder
	gitrollout validate -o json | sed -n 's/.*"release": "\(h1-[0-9a-f]*\)".*/\1/p' | head -n 1
}

setup() {
	git init -q --bare -b main "$WORK/origin.git"
	git clone -q "$WORK/origin.git" "$WORK/work" 2>/dev/null
	cd "$WORK/work"
	git symbolic-ref HEAD refs/heads/main
	cp -R "$WORK/fixture/." .
	git add .
	git commit -q -m 'shop: v1'
	v1=$(git rev-parse HEAD) h1=$(release)
	sed -i 's/newTag: v1/newTag: v2/' apps/shop/overlays/prod/kustomization.yaml
	git commit -q -a -m 'shop: v2'
	v2=$(git rev-parse HEAD) h2=$(release)
	git push -q -u origin main
}

# record PHASE [STEP NAME WEIGHT] writes the state of shop: v1 is stable, and v2
# is in flight if there is a step.
record() {
	rm -f "$WORK/index"
	state "$@" | seal >"$WORK/state.yaml"
	push_state apps/8d/shop.yaml
}

# push_state PATH adds state.yaml to the state branch that the index has.
push_state() {
	blob=$(git hash-object -w "$WORK/state.yaml")
	GIT_INDEX_FILE=$WORK/index git update-index --add --cacheinfo "100644,$blob,$1"
	tree=$(GIT_INDEX_FILE=$WORK/index git write-tree)
	git push -q -f origin "$(git commit-tree -m state "$tree"):refs/heads/gitrollout/state/prod"
}

# state prints the state that record writes.
state() {
	printf 'apiVersion: gitrollout.dev/v1alpha1\nkind: RolloutState\n'
	printf 'app: shop\npath: apps/shop/overlays/prod\nphase: %s\n' "$1"
	printf 'stable: {commit: %s, hash: %s, author: "Bob Ray <bob@example.com>", subject: "shop: v1", since: "2026-11-20T08:00:00Z", templates: {shop/shop: %s}}\n' "$v1" "$h1" "$h1"
	if [ -n "$2" ]; then
		printf 'source: %s\n' "$v2"
		printf 'release: {commit: %s, hash: %s, author: "Ann Lee <ann@example.com>", subject: "shop: v2", since: "2026-11-20T09:00:00Z", templates: {shop/shop: %s}}\n' "$v2" "$h2" "$h2"
		printf 'progress: [{workload: shop/shop, step: %s, of: 4, name: "%s", weight: %s, plan: "0", entered: "2026-11-20T09:30:00Z"}]\n' "$2" "$3" "$4"
	else
		printf 'source: %s\n' "$v1"
	fi
	if [ "$1" = Degraded ]; then
		printf 'rejected: [{hash: %s, commit: %s, reason: "too slow", at: "2026-11-20T10:00:00Z"}]\n' "$h2" "$v2"
	fi
}

setup
"$@"
