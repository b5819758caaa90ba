# shellcheck shell=bash
# Helm's own library. Requires $root (the checkout).
# shellcheck disable=SC2034,SC2154

yaml_library=pyyaml==6.0.3
# It is published for x86-64 only.
helm_library=helm-python-sdk==0.2.2

# has_helm VENV: whether a Python environment has Helm's library.
has_helm() { [[ -e $1/installed && " $(<"$1/installed") " == *" $helm_library "* ]]; }

# render_chart VALUES-FILE NAMESPACE: prints the Kubernetes objects of an installation.
render_chart() {
    local venv=$root/.run/helm libraries=("$helm_library" "$yaml_library")
    if [[ $(uname -m) != x86_64 ]]; then
        command -v helm >/dev/null || die "Helm's library exists for x86-64 only: install the program helm"
        helm template backhaul "$root/deploy/helm/backhaul" --namespace "$2" --values "$1" --set secrets.generate=false
        return
    fi
    # The tools of scripts/test have the libraries too.
    ! has_helm "$root/.run/venv" || venv=$root/.run/venv
    if ! has_helm "$venv"; then
        python3 -c 'import ensurepip, venv' 2>/dev/null || install_packages python3-venv >&2
        say "installing ${libraries[*]}" >&2
        rm -rf "$venv"
        python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check "${libraries[@]}"
        echo "${libraries[*]}" >"$venv/installed"
    fi
    # The library reports the links to grants.sql and definitions.json on standard error.
    "$venv/bin/python" "$root/scripts/lib/render_chart.py" "$@" 2> >(grep -v 'found symbolic link' >&2 || true)
}
