# SPDX-License-Identifier: Apache-2.0
"""serve.c in Python: each request runs on one idle replica, which has its own copy of the model."""

import asyncio

import libdist


class Model:
    def __init__(self, replica):  # loads the model on each replica, before the first request
        self.weight = 3.0


async def answer(strategy, number):
    def compute(replica):  # runs on the replica's thread
        return number * replica.instance_state.weight

    return await strategy.submit(compute)


async def main():
    with libdist.Strategy(2, threads=libdist.Threads.LIBRARY) as strategy:
        with strategy.instances(create_state=Model):
            answers = await asyncio.gather(*(answer(strategy, i) for i in range(4)))
    for i, one in enumerate(answers):
        print(f"{i} -> {one:g}")


asyncio.run(main())
