# shellcheck shell=bash
# Parts of URLs.

# decoded TEXT: with every %XX as the byte it stands for.
decoded() {
    local text=${1//\\/\\\\}
    printf %b "${text//%/\\x}"
}
