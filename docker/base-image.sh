#!/usr/bin/env bash
# Sees to it that the engine has debian:bookworm-slim: there already, pulled, or else made by debootstrap (as root).
#
# A made image takes this machine's package sources, proxies, CA bundle and pip index along, so that apt, pip and uv
# work inside it wherever they work outside. It is for building and testing on this machine, not for publishing.
set -euo pipefail

image=debian:bookworm-slim suite=bookworm bundle=/etc/ssl/host-ca-bundle.crt
fail() { echo "base-image.sh: $*" >&2; exit 1; }

# A setting of pip: its variable first, then its files, as pip itself does it.
pip_setting() {
  local variable=PIP_${1^^}
  variable=${variable//-/_}
  echo "${!variable:-$(python3 -m pip config get "global.$1" 2>/dev/null || true)}"
}

docker info >/dev/null 2>&1 || fail "no Docker engine answers; start Docker, or set DOCKER_HOST to one"
! docker image inspect "$image" >/dev/null 2>&1 || exit 0
! timeout 120 docker pull --quiet "$image" 2>/dev/null || exit 0
command -v debootstrap >/dev/null || fail "$image can neither be pulled nor made; install debootstrap"
[[ $EUID -eq 0 ]] || fail "$image cannot be pulled and only root can make it with debootstrap"

work=$(mktemp -d "${TMPDIR:-/tmp}/base-image.XXXXXX")
trap 'rm -rf -- "$work"' EXIT
root=$work/root

# The packages of this suite come from where this machine gets them, else from where debootstrap does.
format="deb \$(REPO_URI) \$(RELEASE) \$(COMPONENT)"
sources=$(apt-get indextargets --format "$format" "Created-By: Packages" "Origin: Debian" |
  awk -v suite="$suite" '$3 == suite || index($3, suite "-") == 1' | sort -u)
mirror=$(awk -v suite="$suite" '$3 == suite { print $2; exit }' <<<"$sources")
debootstrap --variant=minbase "$suite" "$root" ${mirror:+"$mirror"} >"$work/log" 2>&1 ||
  { tail -20 "$work/log" >&2; fail "debootstrap could not make $suite${mirror:+ from $mirror}, see above"; }

[[ -z $mirror ]] || echo "$sources" >"$root/etc/apt/sources.list"
apt-config dump | grep -E '^Acquire::(Check-Valid-Until|https?::Proxy) ' >"$root/etc/apt/apt.conf.d/00host" || true
rm -rf "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*

changes=(--change 'CMD ["bash"]')
keep() { [[ -z $2 ]] || changes+=(--change "ENV $1=$2"); }
certificates=${SSL_CERT_FILE:-$(pip_setting cert)}
certificates=${certificates:-/etc/ssl/certs/ca-certificates.crt}
if [[ -s $certificates ]]; then
  install -D -m 644 "$certificates" "$root$bundle"
  echo "Acquire::https::CaInfo \"$bundle\";" >>"$root/etc/apt/apt.conf.d/00host"
  for variable in SSL_CERT_FILE PIP_CERT REQUESTS_CA_BUNDLE; do keep "$variable" "$bundle"; done
fi
for variable in http_proxy https_proxy no_proxy; do keep "$variable" "${!variable:-}"; done
keep PIP_INDEX_URL "$(pip_setting index-url)"
keep UV_DEFAULT_INDEX "${UV_DEFAULT_INDEX:-$(pip_setting index-url)}"
keep PIP_EXTRA_INDEX_URL "$(pip_setting extra-index-url)"
keep UV_INDEX "${UV_INDEX:-$(pip_setting extra-index-url)}"

tar -C "$root" -c . | docker import "${changes[@]}" - "$image" >/dev/null
echo "base-image.sh: made $image with debootstrap" >&2
