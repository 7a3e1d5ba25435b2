#!/usr/bin/env bash
# Makes what is handed out.
#
#   deploy/dist.sh rootfs DIR    a static binary in DIR, laid out as the root of the image
#   deploy/dist.sh all           target/dist: an archive (binary, completions, man pages, unit, licences), a bill of materials
#                                and checksums; `make dist` does this
#
# PROFILE is the cargo profile (release). TOOLVANE_REVISION is built in; left out, git is asked. The binary is a static-pie
# over glibc, so it needs no musl toolchain; its names are resolved by files and DNS, which that glibc holds itself.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=${PROFILE:-release}
target=$(rustc -vV | sed -n 's/^host: //p')
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
TOOLVANE_REVISION=${TOOLVANE_REVISION:-$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)}
export TOOLVANE_REVISION
binary=target/static/$target/$([[ $profile == dev ]] && echo debug || echo "$profile")/toolvane

build() {
    RUSTFLAGS="-C target-feature=+crt-static" \
        cargo build --locked --profile "$profile" --target "$target" --target-dir target/static --bin toolvane
    file_kind=$(readelf --program-headers "$binary")
    if grep -q INTERP <<<"$file_kind"; then
        echo "dist: $binary asks for a dynamic loader, so it is not static" >&2
        exit 1
    fi
}

# The image's root: the binary, the roots of trust for TLS, and a place for the state file.
rootfs() {
    local root=$1
    mkdir -p "$root/etc/ssl/certs" "$root/var/lib/toolvane"
    install -m 0755 "$binary" "$root/toolvane"
    if [[ $profile != dev ]]; then strip --strip-debug "$root/toolvane"; fi
    install -m 0644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
}

completions() {
    local folder=$1
    mkdir -p "$folder"
    "$binary" completions bash >"$folder/toolvane.bash"
    "$binary" completions zsh >"$folder/_toolvane"
    "$binary" completions fish >"$folder/toolvane.fish"
}

# A page for the program, and one for each of its commands where it knows how to write them.
man_pages() {
    local folder=$1
    mkdir -p "$folder"
    if "$binary" man --help >/dev/null 2>&1; then
        "$binary" man >"$folder/toolvane.1"
    else
        echo "dist: this toolvane has no command man, so there are no man pages" >&2
    fi
}

bill_of_materials() {
    local into=$1
    PATH=$PWD/.cache/cargo/bin:$PATH
    if ! cargo cyclonedx --version >/dev/null 2>&1; then
        echo "dist: installing cargo-cyclonedx into .cache/cargo" >&2
        cargo install --quiet --locked --root .cache/cargo cargo-cyclonedx@0.5.9
    fi
    cargo cyclonedx --quiet --format json --spec-version 1.5 --target "$target" --override-filename toolvane.cdx
    mv toolvane.cdx.json "$into"
}

all() {
    local name=toolvane-$version-$target
    local out=target/dist
    local tree=$out/$name
    rm -rf "$out"
    mkdir -p "$tree"
    rootfs "$out/out"
    install -m 0755 "$out/out/toolvane" "$tree/toolvane"
    completions "$tree/completions"
    man_pages "$tree/man"
    install -m 0644 README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT "$tree"
    install -m 0644 -D -t "$tree/systemd" deploy/systemd/toolvane.service deploy/systemd/toolvane.yaml
    install -m 0644 -D -t "$tree/config" config/*.yaml config/toolvane.schema.json
    bill_of_materials "$out/$name.cdx.json"
    # The same inputs give the same archive.
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-0}" -C "$out" -cf - "$name" |
        gzip -n >"$out/$name.tar.gz"
    rm -rf "$tree"
    (cd "$out" && sha256sum "$name.tar.gz" "$name.cdx.json" >SHA256SUMS)
    echo "dist: $out holds"
    (cd "$out" && ls -l "$name.tar.gz" "$name.cdx.json" SHA256SUMS)
}

case ${1:-} in
rootfs)
    build
    rootfs "${2:?usage: deploy/dist.sh rootfs DIR}"
    ;;
all)
    build
    all
    ;;
*)
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
