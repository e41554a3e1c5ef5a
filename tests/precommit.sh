#!/usr/bin/env bash
# The pre-commit hooks as a user has them: the real pre-commit, this repository (its HEAD, not the working
# tree) as the hooks' source, and a project of two files of which one is staged.
#
#   tests/precommit.sh [HOOK…]     default: samedevice samedevice-rust samedevice-system
set -euo pipefail

repository=$(cd "$(dirname "$0")/.." && pwd)
cache=$repository/target
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

hooks=("$@")
[ ${#hooks[@]} -gt 0 ] || hooks=(samedevice samedevice-rust samedevice-system)

# Builds of the hooks share what they compile; the environments are made anew for each commit.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/ci-hooks}
export PRE_COMMIT_HOME=$cache/ci-pre-commit
export PIP_DISABLE_PIP_VERSION_CHECK=1
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@example.com GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@example.com
# The repository may belong to another user than the one who runs the test.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
# Set inside a hook of this very repository.
unset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE

venv=$cache/ci-venv
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet 'pre-commit==4.3.0'
PATH=$venv/bin:$PATH

fail() {
    echo "FAILED ($hook): $1" >&2
    [ ! -f "$scratch/log" ] || sed 's/^/    /' "$scratch/log" >&2
    exit 1
}

# A project whose bug shows only to those who read both files.
make_project() {
    git init --quiet "$project"
    cd "$project"
    mkdir generated
    cat > helpers.py <<'PY'
import torch


def make_mask(n):
    return torch.ones(n)
PY
    cat > .pre-commit-config.yaml <<YAML
repos:
  - repo: $source
    rev: $rev
    hooks:
      - id: $hook
        args: [--output-format=concise]
YAML
    printf '[tool.samedevice]\nexclude = ["generated"]\n' > pyproject.toml
    git add .
    git commit --quiet --message start
    pre-commit install > /dev/null
}

write_script() { # FILE MASK
    cat > "$1" <<PY
import torch

from helpers import make_mask

if not torch.cuda.is_available():
    raise SystemExit("needs a GPU")

x = torch.zeros(3, device="cuda")
print(x + $2)
PY
}

test_hook() {
    make_project

    write_script train.py 'make_mask(3)'
    git add train.py
    if git commit --message bug > "$scratch/log" 2>&1; then fail "a commit with a bug went through"; fi
    grep -q '^train\.py:9:.*SD201' "$scratch/log" || fail "no SD201 at train.py:9"
    if grep -q '^helpers\.py' "$scratch/log"; then fail "a finding in a file that is not staged"; fi
    git rm --quiet --force train.py

    write_script generated/train.py 'make_mask(3)'
    git add generated/train.py
    git commit --message excluded > "$scratch/log" 2>&1 || fail "an excluded file was not left alone"

    write_script train.py 'make_mask(3).to(x.device)'
    git add train.py
    git commit --message clean > "$scratch/log" 2>&1 || fail "a clean commit was refused"
    grep -q 'Passed' "$scratch/log" || fail "the hook did not run"
}

source=$scratch/samedevice
git clone --quiet "$repository" "$source"
rev=$(git -C "$source" rev-parse HEAD)

for hook in "${hooks[@]}"; do
    echo "-- hook $hook"
    project=$scratch/project-$hook
    rm -f "$scratch/log"
    if [ "$hook" = samedevice-system ]; then
        (cd "$source" && cargo build --quiet --release --locked)
        PATH=$CARGO_TARGET_DIR/release:$PATH
    fi
    test_hook
    cd "$repository"
done
echo "hooks passed: ${hooks[*]}"
