# SPDX-License-Identifier: Apache-2.0
"""The example from the page of tf.distribute.TPUStrategy.run. Its replicas are eight virtual devices of this machine.

Lines that changed:
    import tensorflow as tf   ->   import libdist.tf as tf      tensors are NumPy arrays
"""

import libdist.tf as tf


def page():
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu='')
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    strategy = tf.distribute.TPUStrategy(resolver)
    @tf.function
    def run():
      def value_fn(value_context):
        return value_context.num_replicas_in_sync
      distributed_values = (
          strategy.experimental_distribute_values_from_function(value_fn))
      def replica_fn(input):
        return input * 2
      return strategy.run(replica_fn, args=(distributed_values,))
    result = run()
    return strategy, result


def main():
    strategy, result = page()
    return {
        "replicas": strategy.num_replicas_in_sync,
        "results": [int(x.numpy()) for x in strategy.experimental_local_results(result)],
    }


if __name__ == "__main__":
    print(main())
