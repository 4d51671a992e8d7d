#!/bin/sh
# Runs a command on the first of two hosts: namespaces with a network, a name and shared memory, which end with the command. Both hosts share
# the files.
#
#     unshare --user --map-root-user --mount --net --uts --ipc --pid --fork --kill-child --mount-proc hosts.sh FOLDER COMMAND...
#
# FOLDER/ssh HOST COMMAND... runs a command on a host. If the file FOLDER/cut appears, the connection ends. FOLDER/ended appears when no process of
# galamost is left on any host after the command.
set -e
folder=$1
shift
cd "$folder"
printf '127.0.0.1 localhost\n10.77.0.1 first\n10.77.0.2 second\n' > hosts
mount --bind hosts /etc/hosts
for host in first second; do
    # libraries find networks in /sys
    unshare --net --uts --ipc --mount sh -e -c '
        hostname $0
        mount -t tmpfs tmpfs /dev/shm
        mount -t sysfs sysfs /sys
        echo $$ > $0.tmp
        mv $0.tmp $0.pid
        exec sleep 1000' $host &
    tries=0
    until [ -e $host.pid ]; do
        kill -0 $! 2> /dev/null || [ -e $host.pid ] || exit 3
        tries=$((tries + 1))
        [ $tries -lt 400 ] || exit 3
        sleep 0.05
    done
done
ip link add first type veth peer name second
n=1
for host in first second; do
    ip link set $host netns "$(cat $host.pid)"
    nsenter -t "$(cat $host.pid)" -n sh -e -c "ip link set lo up; ip addr add 10.77.0.$n/24 dev $host; ip link set $host up"
    n=2
done
# as ssh: options come before the name of the host, and a shell reads the command
cat > ssh <<'S'
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec nsenter -t "$(cat "$(dirname "$0")/$host.pid")" -n -u -i -m sh -c 'cd "$0"; eval "$1"' "$(pwd)" "$*"
S
chmod +x ssh
(
    until [ -e cut ]; do sleep 0.1; done
    nsenter -t "$(cat second.pid)" -n ip link set second down
) &
status=0
nsenter -t "$(cat first.pid)" -n -u -i -m sh -c 'cd "$0"; exec "$@"' "$folder" "$@" || status=$?
while grep -qs galamost /proc/[0-9]*/comm; do sleep 0.1; done
touch ended
exit $status
