# SPDX-License-Identifier: Apache-2.0
"""The example of tf.distribute.ReplicaContext.merge_call, which runs a function once for all replicas.

Lines that changed:
    import tensorflow as tf                        ->   import libdist.tf as tf     tensors are NumPy arrays
    replica_ctx = tf.get_replica_context()         ->   replica_ctx = tf.distribute.get_replica_context()
                                                        the page uses an old name, which TensorFlow 2 lacks, too
"""

import libdist.tf as tf


# Called once in "cross-replica" context.
def merge_fn(distribution, three_plus_replica_id):
    # sum the values across replicas
    return sum(distribution.experimental_local_results(three_plus_replica_id))


# Called once per replica in `distribution`, in a "replica" context.
def fn(three):
    replica_ctx = tf.distribute.get_replica_context()
    v = three + replica_ctx.replica_id_in_sync_group
    # Computes the sum of the `v` values across all replicas.
    s = replica_ctx.merge_call(merge_fn, args=(v,))
    return s + v


def main():
    distribution = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    with distribution.scope():
        merged_results = distribution.run(fn, args=[3])
        # merged_results has the values from every replica execution of `fn`.
        return {"merged": [int(x) for x in distribution.experimental_local_results(merged_results)]}


if __name__ == "__main__":
    print(main())
