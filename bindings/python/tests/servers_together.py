# SPDX-License-Identifier: Apache-2.0
"""Parameter servers and workers of this process, over loopback, and a coordinator of theirs: for tests."""

import contextlib
import socket
import threading

import libdist.tf as tf
from libdist import ClusterResolver, ClusterSpec, InvalidArgument, Server, Strategy, StrategyKind

PATIENCE = 60  # seconds; only against a hang


def cluster_strategy(**jobs):
    """A strategy of parameter servers at these addresses."""
    resolver = ClusterResolver.simple(ClusterSpec(jobs))
    return Strategy(kind=StrategyKind.PARAMETER_SERVER, cluster_resolver=resolver)


class Together:
    """Local servers that have registered `closures` and `updates`, and their coordinator."""

    def __init__(self, num_ps=1, num_workers=1, closures=None, updates=None, num_threads=0, **options):
        self.servers = []
        for _ in range(num_ps + num_workers):
            server = Server.local(num_threads=num_threads)
            for name, fn in (closures or {}).items():
                server.register(name, fn)
            for name, fn in (updates or {}).items():
                server.register_update(name, fn)
            server.start()
            self.servers.append(server)
        self.ps, self.workers = self.servers[:num_ps], self.servers[num_ps:]
        addresses = [server.target.removeprefix("grpc://") for server in self.servers]
        self.strategy = cluster_strategy(ps=addresses[:num_ps], worker=addresses[num_ps:])
        self.coordinator = self.strategy.coordinator(**options)

    def wait_for_workers(self):
        """Until all workers have work, or may have it."""
        while self.coordinator.query().workers_up < len(self.workers):
            threading.Event().wait(0.001)

    def close(self):
        self.coordinator.close()
        self.strategy.close()
        for server in self.servers:
            server.close()


def free_addresses(count):
    """Addresses that nobody listens at: held together, so that none comes twice."""
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in held]


class TfCluster:
    """tf.distribute.Servers of this process, and a resolver that knows them."""

    def __init__(self, num_ps, num_workers):
        self.servers = [tf.distribute.Server.create_local_server() for _ in range(num_ps + num_workers)]
        addresses = [server.target.removeprefix("grpc://") for server in self.servers]
        self.spec = tf.train.ClusterSpec({"ps": addresses[:num_ps], "worker": addresses[num_ps:]})
        self.resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(self.spec, rpc_layer="grpc")

    def close(self):
        for server in self.servers:
            server.close()

    @staticmethod
    def wait_for_workers(coordinator, count):
        """Until all workers have work, or may have it."""
        while coordinator._job().query().workers_up < count:
            threading.Event().wait(0.001)


def assert_equal(x, y, message):
    """tf.debugging.assert_equal(), with the beginning of its text."""
    if x != y:
        raise InvalidArgument(f"assertion failed: [{message}]")
