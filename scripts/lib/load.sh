# shellcheck shell=bash
# Loads all files of this folder. Requires $root (the checkout).
# shellcheck disable=SC2034,SC2154

umask 022
lib=$root/scripts/lib
for part in output settings processes urls http ports packages postgres rabbitmq databases provision build services helm; do
    # shellcheck source=/dev/null
    . "$lib/$part.sh"
done
