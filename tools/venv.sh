#!/bin/sh
# Makes the virtual environment, or brings it up to what a requirements file asks for.
#   venv.sh PYTHON VENV REQUIREMENTS STAMP
# The stamp holds a hash of the requirements: a file that was only touched costs nothing.
set -eu
python=$1 venv=$2 requirements=$3 stamp=$4

fail() {
    echo "error: $1" >&2
    echo "  why: $2" >&2
    echo "  remedy: $3" >&2
    exit 1
}

hash=$(cat requirements*.txt | sha256sum)
if [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null || true)" = "$hash" ]; then
    touch "$stamp"
    exit 0
fi

command -v "$python" >/dev/null || fail "there is no $python" "it is not on PATH" \
    "install Python 3.11 to 3.14, or name one: make PYTHON=/path/to/python3"
"$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' ||
    fail "$("$python" --version) cannot be used" "the pinned packages want Python 3.11 to 3.14" \
        "install one of these, or name one: make PYTHON=/path/to/python3"

if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    package="python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing the Debian package $package (Python's venv module is missing) ..." >&2
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null || {
            apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
                --no-install-recommends "$package" >/dev/null
        } || fail "$package could not be installed" "apt-get failed; its message is above" "install it by hand"
    else
        fail "Python's venv module is missing" "$python cannot import venv or ensurepip" \
            "install it, on Debian: apt-get install $package"
    fi
fi

# A half-made environment, or one of a Python that is gone, has no working pip.
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    echo "making the virtual environment $venv ..." >&2
    rm -rf "$venv"
    "$python" -m venv "$venv"
fi
# uv takes seconds where pip takes minutes. It does not read pip's settings, so pip installs where it is told of another
# index or a proxy; also where there is no uv for this machine, or uv fails: what is wrong is then told once, by pip.
pip() {
    "$venv/bin/python" -m pip --disable-pip-version-check "$@"
}
with_uv() {
    ! pip config list | grep -Eq 'index-url|no-index|proxy' &&
        pip install --quiet -r requirements-uv.txt 2>/dev/null &&
        "$venv/bin/python" -m uv pip install --quiet --python "$venv/bin/python" -r "$requirements" 2>/dev/null
}
echo "installing $requirements into $venv ..." >&2
with_uv || pip install --quiet -r "$requirements" ||
    fail "$requirements could not be installed" "pip's message is above" \
        "see whether the Python package index can be reached"
echo "$hash" >"$stamp"
# The larger sets hold the smaller ones.
case $requirements in
requirements-dev.txt) echo "$hash" | tee "$venv/.ready" "$venv/.ready-docs" >"$venv/.ready-lab" ;;
requirements-lab.txt) echo "$hash" >"$venv/.ready" ;;
esac
