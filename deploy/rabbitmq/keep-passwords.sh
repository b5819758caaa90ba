#!/bin/sh
# usage: keep-passwords.sh INSTALLED NEW >FILE
# Prints the definitions file NEW, for example definitions.json of a new version, with the passwords that its users
# have in the file INSTALLED. It names users that only one of the files has on standard error: a new user has no
# password yet, and a user that only INSTALLED has is not in the output.
set -eu

help() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; }
case ${1:-} in -h | --help)
    help
    exit
    ;;
esac
[ $# -eq 2 ] || {
    help >&2
    exit 2
}
installed=$1 new=$2
umask 077
file=$(mktemp)
trap 'rm -f "$file"' EXIT
cp "$new" "$file"

# users FILE KEY: prints the names of the users with that key, one on each line.
users() { tr -d ' \n' <"$1" | grep -Eo "\"name\":\"[^\"]+\",\"$2\":" | cut -d '"' -f 4; }

# password USER: prints the user's password in INSTALLED, or nothing.
password() {
    tr -d ' \n' <"$installed" | sed -nE "s/.*\"name\":\"$1\",\"password\":\"([^\"]+)\".*/\1/p"
}

for user in $(users "$new" password_hash); do
    if [ -n "$(password "$user")" ]; then
        password "$user" | "$(dirname "$0")/set-password.sh" "$file" "$user"
    else
        echo "$user is new: set its password with set-password.sh" >&2
    fi
done
for user in $(users "$installed" password); do
    users "$new" password_hash | grep -Fqx "$user" ||
        echo "$user is not in $new: if a service uses it, add it with its permissions" >&2
done
cat "$file"
