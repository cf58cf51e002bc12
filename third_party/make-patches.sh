#!/bin/sh
# Writes rustdds/patches anew, from the commits since the one that holds the library unmodified (its id, or a name).
set -e
cd "$(git rev-parse --show-toplevel)"
rm -f third_party/rustdds/patches/*.patch
git format-patch --quiet --zero-commit --no-signature --no-numbered --relative=third_party/rustdds \
    --output-directory third_party/rustdds/patches "$1..HEAD" -- third_party/rustdds/src third_party/rustdds/Cargo.toml
