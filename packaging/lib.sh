# shellcheck shell=bash disable=SC2016,SC2154
# Shared by quickstart and check, which source it with `root` set to the repository's folder.

say() {
    printf '==> %s\n' "$*" >&2
}

die() {
    printf '==> error: %s\n' "$*" >&2
    exit 1
}

# package_names LIST...: the packages that these files in packaging/ name, one a line; # starts a comment.
package_names() {
    local list
    for list in "$@"; do
        sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$root/packaging/$list"
    done
}

# missing_packages LIST...: those of them that are not installed.
missing_packages() {
    comm -23 <(package_names "$@" | sort -u) \
        <(package_names "$@" | xargs dpkg-query --show --showformat '${db:Status-Status} ${Package}\n' 2>/dev/null |
            sed -n 's/^installed //p' | sort -u)
}

# install_packages LIST...: installs what is missing, and touches neither apt nor sudo when nothing is.
install_packages() {
    local missing as_root=()
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        say "no apt here, so nothing is installed; needed are what Debian calls: $(package_names "$@" | xargs)"
        return
    fi
    mapfile -t missing < <(missing_packages "$@")
    [[ ${#missing[@]} -eq 0 ]] && return
    if [[ $(id -u) -ne 0 ]]; then
        command -v sudo >/dev/null ||
            die "these Debian packages are missing, and there is no sudo to install them with: ${missing[*]}"
        as_root=(sudo)
        say "sudo is used for apt-get alone"
    fi
    say "installing with apt: ${missing[*]}"
    # No question is asked: sudo may drop the variable, but then there is nobody on stdin to answer either.
    export DEBIAN_FRONTEND=noninteractive
    local apt=("${as_root[@]}" apt-get -qq -o DPkg::Lock::Timeout=300)
    "${apt[@]}" update </dev/null >&2 || die "apt-get update failed"
    "${apt[@]}" install --yes --no-install-recommends "${missing[@]}" </dev/null >&2 || die "apt-get install failed"
}

# logged FILE COMMAND...: runs COMMAND with its output in FILE, which is shown only if it fails.
logged() {
    local file=$1
    shift
    mkdir -p "$(dirname "$file")"
    if ! "$@" >"$file" 2>&1; then
        cat "$file" >&2
        die "failed: $*"
    fi
}

# fetch_model NAME: prints the path of the model's file.
fetch_model() {
    python3 "$root/tests/models/fetch" "$1"
}
