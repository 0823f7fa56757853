#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
"""Two ranks exchange NumPy arrays whose memory comes and goes as Python has it.

Arrays are dropped and collected between uses, resized in place (realloc, which
is mremap for large ones), views and slices of others, pickled objects, and,
with --threads, sent by several threads at once. Each byte is compared. With
--corrupt one is flipped, which must be noticed.
"""
import argparse
import gc
import sys
import threading

import mpi4py
import numpy as np


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corrupt", action="store_true")
    return parser.parse_args()


options = parse()
mpi4py.rc.thread_level = "multiple" if options.threads else "serialized"
from mpi4py import MPI  # noqa: E402 the level is set before

SIZE_MAX = 150000


def pattern(size, salt):
    return np.arange(size, dtype=np.int64) * 2654435761 + salt


class Exchange:
    """Of one thread with its fellow of the other rank, on its own communicator;
    both draw the same numbers."""

    def __init__(self, comm, seed):
        self.comm = comm
        self.rank = comm.rank
        self.random = np.random.default_rng(seed)
        self.salt = 0

    def buffers(self, send, receive):
        self.salt += 10
        peer = 1 - self.rank
        send[...] = pattern(send.size, self.salt + self.rank).reshape(send.shape)
        receive[...] = -1
        self.comm.Sendrecv(send, peer, 1, receive, peer, 1)
        self.compare(receive)

    def compare(self, array):
        expected = pattern(array.size, self.salt + 1 - self.rank)
        if options.corrupt and self.salt == 70:
            array.reshape(-1)[array.size // 2] ^= 1
        if not np.array_equal(array.reshape(-1), expected):
            print("arrays: wrong data, rank", self.rank, "exchange", self.salt,
                  "of", array.size, flush=True)
            MPI.COMM_WORLD.Abort(1)

    def fresh(self, size):
        self.buffers(np.empty(size, np.int64), np.zeros(size, np.int64))

    def resized(self, size):
        send, receive = np.empty(size, np.int64), np.empty(size, np.int64)
        self.buffers(send, receive)
        for other in (4 * size, size // 2, 2 * size):
            send.resize(other, refcheck=False)
            receive.resize(other, refcheck=False)
            self.buffers(send, receive)
        self.buffers(np.resize(send, size), np.resize(receive, size))

    def views(self, size):
        send = np.empty((size // 100, 100), np.int64)
        receive = np.empty_like(send)
        half = len(send) // 2
        self.buffers(send[half:], receive[half:])
        self.buffers(send[:half], receive[:half])
        self.buffers(send[1:-1], receive[1:-1])
        self.buffers(send, receive)

    def pickled(self, size):
        self.salt += 10
        peer = 1 - self.rank
        mine = {"array": pattern(size, self.salt + self.rank), "list": [size] * 9}
        other = self.comm.sendrecv(mine, peer, 2, None, peer, 2)
        self.compare(other["array"])

    def run(self, rounds):
        for turn in range(rounds):
            size = int(self.random.integers(4000, SIZE_MAX))
            for exchange in (self.fresh, self.fresh, self.resized, self.views,
                             self.pickled):
                exchange(size)
            if turn % 3 == 0:
                gc.collect()


def main():
    if MPI.COMM_WORLD.size != 2:
        sys.exit("arrays: two ranks are needed")
    if options.threads == 0:
        Exchange(MPI.COMM_WORLD, options.seed).run(options.rounds)
    else:
        if MPI.Query_thread() != MPI.THREAD_MULTIPLE:
            print("arrays: SKIP: no THREAD_MULTIPLE")
            return
        comms = [MPI.COMM_WORLD.Dup() for _ in range(options.threads)]
        threads = [threading.Thread(target=Exchange(comm, seed).run,
                                    args=(options.rounds,))
                   for seed, comm in enumerate(comms)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if MPI.COMM_WORLD.rank == 0:
        print("arrays: PASS")


main()
