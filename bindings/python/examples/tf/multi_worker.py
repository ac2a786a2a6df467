# SPDX-License-Identifier: Apache-2.0
"""The example of tf.distribute.MultiWorkerMirroredStrategy: TF_CONFIG with two processes, a variable, and a step.

    DIST_REPLICAS=1 python multi_worker.py 0 &
    DIST_REPLICAS=1 python multi_worker.py 1

Lines that changed:
    import tensorflow as tf   ->   import libdist.tf as tf      tensors are NumPy arrays
The page hard-codes the index 0 and the addresses; here, both are arguments. On CPUs, a TensorFlow worker has one
replica. A libdist worker has one replica per CPU unless DIST_REPLICAS is set.
"""

import json
import os
import sys

import libdist.tf as tf


def main(index, addresses=("localhost:12345", "localhost:23456")):
    tf_config = {
        'cluster': {
            'worker': list(addresses)
        },
        'task': {'type': 'worker', 'index': index}
    }
    os.environ['TF_CONFIG'] = json.dumps(tf_config)

    strategy = tf.distribute.MultiWorkerMirroredStrategy()

    with strategy.scope():
        v = tf.Variable(1.0, aggregation=tf.VariableAggregation.SUM)

    @tf.function
    def step():
        context = tf.distribute.get_replica_context()
        v.assign_add(tf.constant(2.0) * (context.replica_id_in_sync_group + 1))
        return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.constant(1.0))

    reduced = strategy.experimental_local_results(strategy.run(step))
    copies = strategy.experimental_local_results(v)
    return {
        "replicas": strategy.num_replicas_in_sync,
        "variable": [float(copy) for copy in copies],
        "reduced": [float(one) for one in reduced],
    }


if __name__ == "__main__":
    index, *addresses = sys.argv[1:]
    print(json.dumps(main(int(index), addresses) if addresses else main(int(index))))
