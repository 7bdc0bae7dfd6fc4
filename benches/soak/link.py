"""A link to a server that can be cut."""

import socket
import threading


class Link:
    """Carries bytes between any number of clients and one server, unless it is cut."""

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self._listener.getsockname())
        self.server = None
        self._open = threading.Event()
        self._open.set()
        self._pairs = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self):
        """Lets nothing through, and closes no connection."""
        self._open.clear()

    def release(self):
        """Lets everything through again."""
        self._open.set()

    def close_connections(self):
        """Ends all connections that there are."""
        for end in list(self._pairs):
            shut(end)

    def _accept(self):
        while True:
            near, _ = self._listener.accept()
            threading.Thread(target=self._connect, args=[near], daemon=True).start()

    def _connect(self, near):
        self._open.wait()
        try:
            far = socket.create_connection(self.server, timeout=5)
            far.settimeout(None)
        except (OSError, TypeError):
            near.close()
            return
        for one, other in [(near, far), (far, near)]:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._pairs.add(one)
            threading.Thread(target=self._carry, args=[one, other], daemon=True).start()

    def _carry(self, source, target):
        try:
            while data := source.recv(1 << 16):
                self._open.wait()
                target.sendall(data)
        except OSError:
            pass
        self._pairs.discard(source)
        for end in (source, target):
            shut(end)


def shut(end):
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
