"""Network namespaces on loopback addresses, joined by a switch that can delay, lose and cut off packets.

Needs root and /dev/net/tun. Each namespace has an address 127.1.0.n on a TUN device, so that services treat
it as loopback. Nothing else is reached from a namespace, and the network of the machine isn't changed.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import orjson

_CLONE_NEWNET = 0x40000000
_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_REPOSITORY = Path(__file__).parent.parent.parent


def possible() -> bool:
    """True if this process may make namespaces and TUN devices."""
    return os.geteuid() == 0 and os.access("/dev/net/tun", os.W_OK)


class Network:
    """Namespaces by name, and the switch between them."""

    def __init__(self, names: Sequence[str]) -> None:
        self.addresses = {name: f"127.1.0.{number}" for number, name in enumerate(names, 1)}
        self._prefix = f"tamis-{os.getpid()}-"
        self._switch: subprocess.Popen[bytes] | None = None
        self._libc = ctypes.CDLL(None, use_errno=True)

    def __enter__(self) -> Self:
        devices: dict[str, int] = {}
        try:
            for number, (name, address) in enumerate(self.addresses.items(), 1):
                devices[address] = self._add(name, address, f"tamis{os.getpid() % 100_000}n{number}")
            self._switch = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.faults.network_switch"),
                    *(f"{address}={device}" for address, device in devices.items()),
                ],
                cwd=_REPOSITORY,
                stdin=subprocess.PIPE,
                pass_fds=list(devices.values()),
            )
        except BaseException:
            self._remove()
            raise
        finally:
            for device in devices.values():
                os.close(device)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._switch is not None and self._switch.stdin is not None:
            with suppress(BrokenPipeError):
                self._switch.stdin.close()
            self._switch.wait(10)
        self._remove()

    def become(self, delay: float = 0.0, loss: float = 0.0, cut: Sequence[tuple[str, str]] = ()) -> None:
        """Delay each packet by `delay` seconds, lose each with a probability of `loss`, and pass none between
        the pairs of namespaces in `cut`.
        """
        pairs = [[self.addresses[name] for name in pair] for pair in cut]
        assert self._switch is not None and self._switch.stdin is not None
        self._switch.stdin.write(orjson.dumps({"delay": delay, "loss": loss, "cut": pairs}) + b"\n")
        self._switch.stdin.flush()

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        """Put this thread, and the threads and processes that it starts, into a namespace."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            there = os.open(f"/run/netns/{self._prefix}{name}", os.O_RDONLY)
            try:
                self._enter(there)
                yield
            finally:
                self._enter(before)
                os.close(there)
        finally:
            os.close(before)

    def _enter(self, namespace: int) -> None:
        if self._libc.setns(namespace, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")

    def _add(self, name: str, address: str, device: str) -> int:
        """Make a namespace with its address; returns the file descriptor of its device."""
        namespace = self._prefix + name
        _ip("netns", "add", namespace)
        opened = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(opened, _TUNSETIFF, struct.pack("16sH22x", device.encode(), _IFF_TUN | _IFF_NO_PI))
        _ip("link", "set", device, "netns", namespace)
        _ip("-n", namespace, "link", "set", "lo", "up")
        # All of 127.0.0.0/8 would be local to the namespace.
        _ip("-n", namespace, "address", "delete", "127.0.0.1/8", "dev", "lo")
        _ip("-n", namespace, "address", "add", "127.0.0.1/32", "dev", "lo")
        with self.inside(name):
            Path("/proc/sys/net/ipv4/conf/all/route_localnet").write_text("1")
        _ip("-n", namespace, "address", "add", f"{address}/24", "scope", "global", "dev", device)
        _ip("-n", namespace, "link", "set", device, "up")
        return opened

    def _remove(self) -> None:
        for name in self.addresses:
            if Path(f"/run/netns/{self._prefix}{name}").exists():
                _ip("netns", "delete", self._prefix + name)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
