#!/bin/sh
# Starts the MariaDB of this folder in the foreground; the first time it is made. It listens on a unix socket here, and
# on the address that is given.
set -eu
umask 077
cd "$(dirname "$0")"
PATH=$PATH:/usr/sbin:/usr/local/sbin
server=$(command -v mariadbd || command -v mysqld || :)
install=$(command -v mariadb-install-db || command -v mysql_install_db || :)
if [ -z "$server" ] || [ -z "$install" ]; then
	echo "MariaDB is not installed here: mariadbd and mariadb-install-db are not in PATH" >&2
	exit 127
fi
if [ "$1" = version ]; then exec "$server" --no-defaults --version; fi
if [ "$(id -u)" = 0 ]; then # MariaDB refuses root
	for user in mysql nobody; do
		if id "$user" >/dev/null 2>&1; then
			chown -R "$user" .
			chmod o+x .. ../.. # the run's own
			drop="setpriv --reuid=$user --regid=$(id -g "$user") --clear-groups"
			$drop test -r "$PWD/server.sh" || {
				echo "user $user cannot enter $PWD: let others pass through the folders above it (chmod o+x)" >&2
				exit 1
			}
			exec $drop sh "$PWD/server.sh" "$@"
		fi
	done
	echo "there is neither a user mysql nor nobody to run MariaDB as, which refuses root" >&2
	exit 1
fi
export TMPDIR="$PWD/tmp"
mkdir -p tmp
if [ ! -f made ]; then
	rm -rf data
	"$install" --no-defaults --datadir="$PWD/data" --tmpdir="$PWD/tmp" --skip-test-db --skip-name-resolve \
		--auth-root-authentication-method=socket >install.log 2>&1 || { cat install.log >&2; exit 1; }
	touch made
fi
if [ -n "${3:-}" ]; then
	has=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
	taskset -cp "$3" $$ >/dev/null 2>&1 || :
	got=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
	[ "$got" = "$3" ] || { echo "server: cpus: $3 are not all here: this machine gives $has" >&2; exit 1; }
fi
reached=--skip-networking
[ -z "$1" ] || reached="--bind-address=$1 --port=3306"
# The socket is named as the data see it: its whole path may be longer than the 107 bytes that a socket can have.
exec "$server" --defaults-file="$PWD/settings.cnf" --datadir="$PWD/data" --tmpdir="$PWD/tmp" --socket=../socket \
	--pid-file="$PWD/pid" --init-file="$PWD/first.sql" $reached
