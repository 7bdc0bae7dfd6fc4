#!/usr/bin/env python3
"""Links of a given rate and delay between network namespaces, where the kernel has no `netem`.

    link.py HOSTS RATE_BITS DELAY_SECONDS

Makes the namespaces gnarl-1 and so on with a TUN device each (10.77.0.i), one of this machine (10.77.0.254),
and carries packets between them until it is killed: each device sends at the rate, and a packet arrives so
much later. Packets are 64 KB, so that carrying them costs little. Needs root; `hosts up N RATE DELAY` starts it.
"""

import ctypes
import fcntl
import heapq
import os
import selectors
import struct
import subprocess
import sys
import time

HOSTS, RATE, DELAY = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
TUNSETIFF, IFF_TUN, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 0x0001, 0x1000, 0x40000000
MTU = 65000
# A link holds so much at most before it drops, as a switch does.
QUEUE_SECONDS = 0.5


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True)


def enter(path):
    with open(path) as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter {path}")


def tun(name):
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    return device


def devices():
    """The device of each address's last byte."""
    own = "/proc/self/ns/net"
    home = os.open(own, os.O_RDONLY)
    found = {254: tun("gnarl0")}
    for host in range(1, HOSTS + 1):
        ip("netns", "add", f"gnarl-{host}")
        enter(f"/var/run/netns/gnarl-{host}")
        found[host] = tun("gnarl0")
        enter(f"/proc/self/fd/{home}")
        ip("-n", f"gnarl-{host}", "link", "set", "lo", "up")
    for host in found:
        within = [] if host == 254 else ["-n", f"gnarl-{host}"]
        ip(*within, "address", "add", f"10.77.0.{host}/24", "dev", "gnarl0")
        ip(*within, "link", "set", "gnarl0", "mtu", MTU, "txqueuelen", 1000, "up")
    return found


def main():
    found = devices()
    ready = selectors.DefaultSelector()
    for host, device in found.items():
        ready.register(device, selectors.EVENT_READ, host)
    free = dict.fromkeys(found, 0.0)
    under_way, number = [], 0
    print("up", flush=True)
    while True:
        wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
        for key, _ in ready.select(wait):
            now, sender = time.monotonic(), key.data
            packet = os.read(key.fd, MTU + 100)
            to = packet[19] if packet[0] >> 4 == 4 else None
            if to not in found or free[sender] > now + QUEUE_SECONDS:
                continue
            free[sender] = max(free[sender], now) + 8 * len(packet) / RATE
            number += 1
            heapq.heappush(under_way, (free[sender] + DELAY, number, to, packet))
        now = time.monotonic()
        while under_way and under_way[0][0] <= now:
            _, _, to, packet = heapq.heappop(under_way)
            try:
                os.write(found[to], packet)
            except BlockingIOError:
                pass


main()
