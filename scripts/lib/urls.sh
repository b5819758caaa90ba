# shellcheck shell=bash
# Parts of URLs.

# decoded TEXT: prints the percent-decoded text.
decoded() {
    local text=${1//\\/\\\\}
    printf %b "${text//%/\\x}"
}
