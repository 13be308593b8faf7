"""Switch between the network devices of namespaces, in a process of its own: delays, drops, and cuts off.

`python -m tests.faults.network_switch ADDRESS=FD…` reads IP packets from TUN devices and writes each to the
device of its destination. Each line of the standard input is a state of the network in JSON: `delay` in
seconds, `loss` as a probability, and `cut`, the pairs of addresses between which no packet passes. It ends
with its input. The kernel's `tc netem` does the same, but is not in every kernel.
"""

from __future__ import annotations

import heapq
import itertools
import os
import random
import selectors
import socket
import sys
import time

import orjson

_MTU = 65_536


class Switch:
    """Passes packets on between devices. `devices`: file descriptors by address, in network order."""

    def __init__(self, devices: dict[bytes, int], chance: random.Random) -> None:
        self._devices, self._chance = devices, chance
        self._delay, self._loss = 0.0, 0.0
        self._cut: set[frozenset[bytes]] = set()
        self._waiting: list[tuple[float, int, int, bytes]] = []
        self._numbers = itertools.count()

    def become(self, line: bytes) -> None:
        """Have the state of a line."""
        state = orjson.loads(line)
        self._delay, self._loss = state["delay"], state["loss"]
        self._cut = {frozenset(map(socket.inet_aton, pair)) for pair in state["cut"]}

    def take(self, device: int, now: float) -> None:
        """Read all packets of a device."""
        while True:
            try:
                packet = os.read(device, _MTU)
            except BlockingIOError:
                return
            source, to = packet[12:16], packet[16:20]
            target = self._devices.get(to)
            lost = self._loss and self._chance.random() < self._loss
            if packet[0] >> 4 != 4 or target is None or lost or frozenset((source, to)) in self._cut:
                continue
            if self._delay:
                heapq.heappush(self._waiting, (now + self._delay, next(self._numbers), target, packet))
            else:
                _write(target, packet)

    def pass_on(self, now: float) -> float | None:
        """Write the packets that have waited; returns the seconds until the next one."""
        while self._waiting and self._waiting[0][0] <= now:
            _, _, target, packet = heapq.heappop(self._waiting)
            _write(target, packet)
        return self._waiting[0][0] - now if self._waiting else None


def _write(device: int, packet: bytes) -> None:
    try:
        os.write(device, packet)
    except BlockingIOError:
        return  # its queue is full: a network drops the packet, too


def main(arguments: list[str]) -> None:
    pairs = (argument.split("=") for argument in arguments)
    devices = {socket.inet_aton(address): int(number) for address, number in pairs}
    switch = Switch(devices, random.Random(12))
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        for device in devices.values():
            os.set_blocking(device, False)
            selector.register(device, selectors.EVENT_READ)
        wait = None
        while True:
            for key, _ in selector.select(wait):
                if key.fd != 0:
                    switch.take(key.fd, time.monotonic())
                elif line := sys.stdin.buffer.readline():
                    switch.become(line)
                else:
                    return
            wait = switch.pass_on(time.monotonic())


if __name__ == "__main__":
    main(sys.argv[1:])
